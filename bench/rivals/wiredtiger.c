// The B-tree engine that MongoDB stands on, in process, as the baseline of W2 and W8. Options are
// those MongoDB gives it: snappy for log and blocks, 32 KB leaves for documents, prefix-compressed
// 16 KB leaves for index entries, a log that is synced every 100 ms, a checkpoint every 60 s.
//
//   wiredtiger insert FOLDER CACHE_BYTES BATCH
//       a table of documents by number, a table of their _ids, one transaction a batch
//   wiredtiger entries FOLDER CACHE_BYTES BATCH DOCUMENTS SECONDS TABLES
//       index entries alone, as crates/bench/src/entries.rs draws them; ends by itself after SECONDS
//
// Documents, BSON or their entries, come one after another on standard input; reading them is not
// timed.
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

#define TABLES_MAX 8

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

// Makes room for so many bytes.
static void grow(unsigned char **buffer, size_t *capacity, size_t bytes) {
    if (bytes <= *capacity) {
        return;
    }
    *capacity = bytes * 2;
    *buffer = realloc(*buffer, *capacity);
    if (*buffer == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", *capacity);
        exit(1);
    }
}

// The next document of the input in a buffer that grows; 0 at its end.
static uint32_t read_document(unsigned char **buffer, size_t *capacity, size_t at) {
    unsigned char length_bytes[4];
    if (fread(length_bytes, 1, 4, stdin) != 4) {
        return 0;
    }
    const uint32_t length = length_at(length_bytes);
    grow(buffer, capacity, at + length);
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

// Puts the entries of one document, each into its table.
static void put_entries(WT_CURSOR **tables, int table_count, const unsigned char *at,
                        const unsigned char *end) {
    while (at < end) {
        uint16_t length;
        memcpy(&length, at + 1, 2);
        if (at[0] >= table_count || at + 3 + length > end) {
            fprintf(stderr, "an entry of table %d and %d bytes\n", at[0], length);
            exit(1);
        }
        put(tables[at[0]], at + 3, length, "", 0);
        at += 3 + length;
    }
}

// Reads the entries of up to `count` documents, each behind their length, to the start of the buffer
// and adds to `number`; returns their bytes.
static size_t read_batch(unsigned char **bytes, size_t *capacity, int64_t *number, int64_t count) {
    size_t end = 0;
    uint32_t length;
    unsigned char length_bytes[4];
    while (count-- > 0 && fread(length_bytes, 1, 4, stdin) == 4) {
        length = length_at(length_bytes);
        grow(bytes, capacity, end + 4 + length);
        memcpy(*bytes + end, length_bytes, 4);
        if (fread(*bytes + end + 4, 1, length, stdin) != length) {
            fprintf(stderr, "the input ends within a document\n");
            exit(1);
        }
        end += 4 + length;
        (*number)++;
    }
    return end;
}

// Puts the entries of one batch in one transaction; returns the seconds it took.
static double put_batch(WT_SESSION *session, WT_CURSOR **tables, int table_count,
                        const unsigned char *bytes, size_t end) {
    const double begin = now();
    check(session->begin_transaction(session, NULL), "a transaction");
    for (size_t at = 0; at < end; at += 4 + length_at(bytes + at)) {
        put_entries(tables, table_count, bytes + at + 4, bytes + at + 4 + length_at(bytes + at));
    }
    check(session->commit_transaction(session, NULL), "a commit");
    return now() - begin;
}

static void entries(char **arguments) {
    pthread_t syncer;
    WT_SESSION *session = start(arguments[0], arguments[1], &syncer);
    const int64_t batch = atoll(arguments[2]), documents = atoll(arguments[3]);
    const double limit = atof(arguments[4]);
    const int table_count = atoi(arguments[5]);
    WT_CURSOR *tables[TABLES_MAX];
    if (table_count > TABLES_MAX) {
        fprintf(stderr, "%d tables\n", table_count);
        exit(1);
    }
    for (int number = 0; number < table_count; number++) {
        char name[32];
        snprintf(name, sizeof name, "table:entries%d", number);
        tables[number] = table(session, name, INDEX_TABLE);
    }
    unsigned char *bytes = NULL;
    size_t capacity = 0, end;
    int64_t number = 0, tenth_start = 0;
    double seconds = 0, tenth_seconds = 0;
    int tenth = 0;
    while (seconds < limit && (end = read_batch(&bytes, &capacity, &number, batch)) > 0) {
        const double taken = put_batch(session, tables, table_count, bytes, end);
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
    } else if (count == 8 && strcmp(arguments[1], "entries") == 0) {
        entries(arguments + 2);
    } else {
        fprintf(stderr, "wiredtiger insert|entries, see the head of its source\n");
        return 2;
    }
    return 0;
}
