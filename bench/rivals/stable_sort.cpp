// W1's baseline: std::stable_sort of the words on standard input, parted by white space. Timed is
// the sort alone. Prints the number of words and the seconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

static std::string read_input() {
    std::string text;
    std::vector<char> buffer(1 << 20);
    size_t count;
    while ((count = fread(buffer.data(), 1, buffer.size(), stdin)) > 0) {
        text.append(buffer.data(), count);
    }
    return text;
}

static std::vector<std::string> split(const std::string &text) {
    const char *const spaces = " \t\r\n\v\f";
    std::vector<std::string> words;
    size_t start = text.find_first_not_of(spaces);
    while (start != std::string::npos) {
        const size_t end = std::min(text.find_first_of(spaces, start), text.size());
        words.emplace_back(text, start, end - start);
        start = text.find_first_not_of(spaces, end);
    }
    return words;
}

int main() {
    std::vector<std::string> words = split(read_input());
    const auto start = std::chrono::steady_clock::now();
    std::stable_sort(words.begin(), words.end());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (!std::is_sorted(words.begin(), words.end())) {
        fprintf(stderr, "the words are not sorted\n");
        return 1;
    }
    printf("words %zu\nseconds %.6f\n", words.size(), taken.count());
    return 0;
}
