// The B-tree engine that MongoDB stands on, in process, as the baseline of W2 and W8. Options are
// those MongoDB gives it: snappy for log and blocks, 32 KB leaves for documents, prefix-compressed
// 16 KB leaves for index entries, a log that is synced every 100 ms, a checkpoint every 60 s.
//
//   wiredtiger insert FOLDER CACHE_BYTES BATCH
//       a table of documents by number, a table of their _ids, one transaction a batch
//   wiredtiger multikey FOLDER CACHE_BYTES BATCH DOCUMENTS SECONDS
//       a table of (string, document number) entries, one for each string of the array in each
//       document's second field; ends by itself after SECONDS
//
// BSON documents come one after another on standard input; reading them is not timed.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wiredtiger.h>

#define DOCUMENT_TABLE                                                                             \
    "key_format=q,value_format=u,block_compressor=snappy,allocation_size=4KB,"                     \
    "internal_page_max=4KB,leaf_page_max=32KB,leaf_value_max=64MB,split_pct=90,memory_page_max=10MB"
#define INDEX_TABLE                                                                                \
    "key_format=u,value_format=u,prefix_compression=true,allocation_size=4KB,"                     \
    "internal_page_max=16KB,leaf_page_max=16KB"

static WT_CONNECTION *connection;
static volatile int running = 1;

static void check(int code, const char *what) {
    if (code != 0) {
        fprintf(stderr, "%s: %s\n", what, wiredtiger_strerror(code));
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// As MongoDB's journal thread does.
static void *sync_log(void *unused) {
    WT_SESSION *session;
    const struct timespec pause = {0, 100000000};
    (void)unused;
    check(connection->open_session(connection, NULL, NULL, &session), "a session");
    while (running) {
        nanosleep(&pause, NULL);
        check(session->log_flush(session, "sync=on"), "syncing the log");
    }
    return NULL;
}

static WT_SESSION *start(const char *folder, const char *cache_bytes, pthread_t *syncer) {
    char options[1024];
    WT_SESSION *session;
    snprintf(options, sizeof options,
             "create,cache_size=%s,session_max=100,eviction=(threads_min=4,threads_max=4),"
             "log=(enabled=true,archive=true,compressor=snappy),checkpoint=(wait=60,log_size=2GB),"
             "extensions=[libwiredtiger_snappy.so]",
             cache_bytes);
    check(wiredtiger_open(folder, NULL, options, &connection), "opening the database");
    check(connection->open_session(connection, NULL, NULL, &session), "a session");
    if (pthread_create(syncer, NULL, sync_log, NULL) != 0) {
        fprintf(stderr, "no thread for the log\n");
        exit(1);
    }
    return session;
}

static void stop(pthread_t syncer) {
    running = 0;
    pthread_join(syncer, NULL);
    check(connection->close(connection, "leak_memory=true"), "closing the database");
}

static WT_CURSOR *table(WT_SESSION *session, const char *name, const char *options) {
    WT_CURSOR *cursor;
    check(session->create(session, name, options), name);
    check(session->open_cursor(session, name, NULL, "overwrite=true", &cursor), name);
    return cursor;
}

static uint32_t length_at(const unsigned char *bytes) {
    uint32_t length;
    memcpy(&length, bytes, 4);
    return length;
}

// The next document of the input in a buffer that grows; 0 at its end.
static uint32_t read_document(unsigned char **buffer, size_t *capacity, size_t at) {
    unsigned char length_bytes[4];
    if (fread(length_bytes, 1, 4, stdin) != 4) {
        return 0;
    }
    const uint32_t length = length_at(length_bytes);
    if (at + length > *capacity) {
        *capacity = (at + length) * 2;
        *buffer = realloc(*buffer, *capacity);
        if (*buffer == NULL) {
            fprintf(stderr, "no memory for %zu bytes\n", *capacity);
            exit(1);
        }
    }
    memcpy(*buffer + at, length_bytes, 4);
    if (fread(*buffer + at + 4, 1, length - 4, stdin) != length - 4) {
        fprintf(stderr, "the input ends within a document\n");
        exit(1);
    }
    return length;
}

static void put(WT_CURSOR *cursor, const void *key, size_t key_bytes, const void *value,
                size_t value_bytes) {
    WT_ITEM key_item = {.data = key, .size = key_bytes};
    WT_ITEM value_item = {.data = value, .size = value_bytes};
    cursor->set_key(cursor, &key_item);
    cursor->set_value(cursor, &value_item);
    check(cursor->insert(cursor), "an insert");
}

// The first field is an ObjectId: a length, its type, "_id" and a zero stand before it.
#define ID_AT (4 + 1 + 4)
#define ID_BYTES 12

static void insert(char **arguments) {
    unsigned char *bytes = NULL;
    size_t capacity = 0, end = 0, at = 0;
    uint32_t length;
    while ((length = read_document(&bytes, &capacity, end)) > 0) {
        end += length;
    }
    pthread_t syncer;
    WT_SESSION *session = start(arguments[0], arguments[1], &syncer);
    WT_CURSOR *documents = table(session, "table:documents", DOCUMENT_TABLE);
    WT_CURSOR *ids = table(session, "table:ids", INDEX_TABLE);
    const int64_t batch = atoll(arguments[2]);
    int64_t number = 0;
    const double begin = now();
    while (at < end) {
        check(session->begin_transaction(session, NULL), "a transaction");
        for (int64_t count = 0; count < batch && at < end; count++) {
            length = length_at(bytes + at);
            WT_ITEM document = {.data = bytes + at, .size = length};
            number++;
            documents->set_key(documents, number);
            documents->set_value(documents, &document);
            check(documents->insert(documents), "a document");
            put(ids, bytes + at + ID_AT, ID_BYTES, &number, sizeof number);
            at += length;
        }
        check(session->commit_transaction(session, NULL), "a commit");
    }
    const double seconds = now() - begin;
    stop(syncer);
    printf("documents %lld\nseconds %.6f\n", (long long)number, seconds);
}

// Puts an entry for each string of the array in the second field.
static void put_strings(WT_CURSOR *entries, const unsigned char *document, int64_t number) {
    // _id, then the type of the array (0x04), its name and a zero
    const unsigned char *at = document + ID_AT + ID_BYTES + 1;
    at += strlen((const char *)at) + 1;
    const unsigned char *const end = at + length_at(at) - 1;
    unsigned char key[1024];
    for (at += 4; at < end;) {
        at += 1 + strlen((const char *)at + 1) + 1;
        const uint32_t length = length_at(at);
        if (length + 8 > sizeof key) {
            fprintf(stderr, "a string of %u bytes\n", length);
            exit(1);
        }
        // The number behind the string makes the entry unique, its bytes in order of size.
        memcpy(key, at + 4, length);
        for (int place = 0; place < 8; place++) {
            key[length + place] = (unsigned char)(number >> (56 - 8 * place));
        }
        put(entries, key, length + 8, "", 0);
        at += 4 + length;
    }
}

// Reads up to `count` documents to the start of the buffer; returns their bytes.
static size_t read_batch(unsigned char **bytes, size_t *capacity, int64_t count) {
    size_t end = 0;
    uint32_t length;
    while (count-- > 0 && (length = read_document(bytes, capacity, end)) > 0) {
        end += length;
    }
    return end;
}

// Puts the entries of one batch in one transaction; returns the seconds it took.
static double put_batch(WT_SESSION *session, WT_CURSOR *entries, const unsigned char *bytes,
                        size_t end, int64_t *number) {
    const double begin = now();
    check(session->begin_transaction(session, NULL), "a transaction");
    for (size_t at = 0; at < end; at += length_at(bytes + at)) {
        put_strings(entries, bytes + at, ++*number);
    }
    check(session->commit_transaction(session, NULL), "a commit");
    return now() - begin;
}

static void multikey(char **arguments) {
    pthread_t syncer;
    WT_SESSION *session = start(arguments[0], arguments[1], &syncer);
    WT_CURSOR *entries = table(session, "table:entries", INDEX_TABLE);
    const int64_t batch = atoll(arguments[2]), documents = atoll(arguments[3]);
    const double limit = atof(arguments[4]);
    unsigned char *bytes = NULL;
    size_t capacity = 0, end;
    int64_t number = 0, tenth_start = 0;
    double seconds = 0, tenth_seconds = 0;
    int tenth = 0;
    while (seconds < limit && (end = read_batch(&bytes, &capacity, batch)) > 0) {
        const double taken = put_batch(session, entries, bytes, end, &number);
        seconds += taken;
        tenth_seconds += taken;
        if (number >= documents * (tenth + 1) / 10 || seconds >= limit) {
            printf("tenth%d %.1f\n", tenth++, (double)(number - tenth_start) / tenth_seconds);
            tenth_start = number;
            tenth_seconds = 0;
        }
    }
    printf("documents %lld\nseconds %.6f\n", (long long)number, seconds);
    fflush(stdout);
    // Closing would write the whole cache; the figures are out and the folder is temporary.
    _Exit(0);
}

int main(int count, char **arguments) {
    if (count == 5 && strcmp(arguments[1], "insert") == 0) {
        insert(arguments + 2);
    } else if (count == 7 && strcmp(arguments[1], "multikey") == 0) {
        multikey(arguments + 2);
    } else {
        fprintf(stderr, "wiredtiger insert|multikey, see the head of its source\n");
        return 2;
    }
    return 0;
}
