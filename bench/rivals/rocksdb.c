// What index entries take in an LSM tree of key-value pairs: RocksDB with LZ4 on every level, each
// table a column family, all merged at the end.
//
//   rocksdb FOLDER TABLES
//       reads index entries as crates/bench/src/entries.rs draws them
//
// Prints the bytes of each table, table0, table1, …, and the seconds.
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TABLES_MAX 8
#define BATCH_BYTES (1 << 20)

static rocksdb_t *database;
static rocksdb_column_family_handle_t *tables[TABLES_MAX];
static int table_count;

static void check(char *error) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void start(const char *folder) {
    char *error = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(options, rocksdb_lz4_compression);
    rocksdb_options_increase_parallelism(options, 2);
    database = rocksdb_open(options, folder, &error);
    check(error);
    for (int number = 0; number < table_count; number++) {
        char name[16];
        snprintf(name, sizeof name, "table%d", number);
        tables[number] = rocksdb_create_column_family(database, options, name, &error);
        check(error);
    }
}

static void write_batch(rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch) {
    char *error = NULL;
    rocksdb_write(database, options, batch, &error);
    check(error);
    rocksdb_writebatch_clear(batch);
}

// The next entry of the input into `key`; its length, or 0 at the end of a document's entries.
static size_t read_entry(size_t *left, int *table, char *key) {
    unsigned char head[3];
    uint16_t length;
    if (*left == 0) {
        return 0;
    }
    if (*left < sizeof head || fread(head, 1, sizeof head, stdin) != sizeof head) {
        check("the input ends within an entry");
    }
    memcpy(&length, head + 1, sizeof length);
    *table = head[0];
    if (*table >= table_count || *left < sizeof head + length ||
        fread(key, 1, length, stdin) != length) {
        check("an entry that cannot be");
    }
    *left -= sizeof head + length;
    return length;
}

static void put_all(void) {
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(options, 1);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    static char key[1 << 16];
    uint32_t document_bytes;
    size_t length, bytes = 0;
    int table;
    while (fread(&document_bytes, 1, sizeof document_bytes, stdin) == sizeof document_bytes) {
        size_t left = document_bytes;
        while ((length = read_entry(&left, &table, key)) > 0) {
            rocksdb_writebatch_put_cf(batch, tables[table], key, length, "", 0);
            bytes += length;
        }
        if (bytes > BATCH_BYTES) {
            write_batch(options, batch);
            bytes = 0;
        }
    }
    write_batch(options, batch);
}

// Merges everything of a table and prints what it takes.
static void merge(int number) {
    char *error = NULL;
    rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
    rocksdb_flush_cf(database, flush, tables[number], &error);
    check(error);
    rocksdb_compact_range_cf(database, tables[number], NULL, 0, NULL, 0);
    char *bytes =
        rocksdb_property_value_cf(database, tables[number], "rocksdb.live-sst-files-size");
    printf("table%d %s\n", number, bytes);
    free(bytes);
}

int main(int count, char **arguments) {
    table_count = count == 3 ? atoi(arguments[2]) : 0;
    if (table_count < 1 || table_count > TABLES_MAX) {
        fprintf(stderr, "rocksdb FOLDER TABLES, see the head of its source\n");
        return 2;
    }
    start(arguments[1]);
    const double begin = now();
    put_all();
    for (int number = 0; number < table_count; number++) {
        merge(number);
    }
    printf("seconds %.6f\n", now() - begin);
    fflush(stdout);
    // The figures are out and the folder is temporary.
    _Exit(0);
}
