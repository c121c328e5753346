#define _GNU_SOURCE
#include "ircload.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* xorshift64: the same seed gives the same rooms and the same order of messages everywhere. */
uint64_t next_random(void) {
    opt.seed ^= opt.seed << 13;
    opt.seed ^= opt.seed >> 7;
    opt.seed ^= opt.seed << 17;
    return opt.seed;
}

static int bucket_of(uint64_t ns) {
    if (ns < 64) return (int)ns;
    int exponent = 63 - __builtin_clzll(ns);
    int bucket = (exponent - 5) * 64 + (int)((ns >> (exponent - 6)) & 63);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static uint64_t bucket_floor(int bucket) {
    if (bucket < 64) return (uint64_t)bucket;
    int exponent = bucket / 64 + 5;
    return (UINT64_C(1) << exponent) + ((uint64_t)(bucket % 64) << (exponent - 6));
}

void histogram_add(histogram *h, uint64_t ns) {
    h->buckets[bucket_of(ns)]++;
    h->count++;
    h->sum += (double)ns;
    if (ns > h->max) h->max = ns;
}

double histogram_quantile_us(const histogram *h, double q) {
    if (!h->count) return 0;
    uint64_t rank = (uint64_t)(q * (double)(h->count - 1)), seen = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen > rank) return (double)bucket_floor(i) / 1e3;
    }
    return (double)h->max / 1e3;
}

/* The process's own CPU clock counts nanoseconds; /proc/PID/stat would round to a hundredth of a second. */
double server_cpu(void) {
    clockid_t clock;
    struct timespec t;
    if (!opt.server_pid) return 0;
    if (clock_getcpuclockid(opt.server_pid, &clock) || clock_gettime(clock, &t)) return -1;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

long server_rss_kb(void) {
    char path[64], row[256];
    long kb = 0;
    if (!opt.server_pid) return 0;
    snprintf(path, sizeof path, "/proc/%d/status", opt.server_pid);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    while (fgets(row, sizeof row, file))
        if (!strncmp(row, "VmRSS:", 6)) kb = atol(row + 6);
    fclose(file);
    return kb;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

double own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void *allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) fail("out of memory");
    return memory;
}

void *reallocate(void *old, size_t size) {
    void *memory = realloc(old, size);
    if (!memory) fail("out of memory");
    return memory;
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}
