#include "ircload.h"

#include <inttypes.h>
#include <stdio.h>

static double per(double amount, double unit) { return unit > 0 ? amount / unit : 0; }

static void print_arguments(const run *r) {
    printf("\"label\":\"%s\",\"scen\":\"%s\",\"ok\":%s,", opt.label, opt.scenario_name, r->ok ? "true" : "false");
    printf("\"n\":%d,\"S\":%d,\"M\":%d,\"B\":%d,\"W\":%d,\"rate\":%.0f,", opt.readers,
           opt.scenario == DM ? opt.pairs : opt.senders, opt.messages, opt.body_bytes, opt.window, opt.rate);
    printf("\"C\":%d,\"k\":%d,\"J\":%d,", opt.channels, opt.scenario == CHANNELS ? opt.channel_members : 0,
           opt.room_size);
}

static void print_setup(const run *r) {
    const histogram *registration = &counts.registration;
    printf("\"up\":%d,\"joined\":%d,\"reg_s\":%.4f,\"reg_per_s\":%.0f,\"reg_p50_us\":%.0f,\"reg_p99_us\":%.0f,",
           counts.up, counts.joined, r->register_s, per(counts.up, r->register_s),
           histogram_quantile_us(registration, .5), histogram_quantile_us(registration, .99));
    printf("\"reg_cpu_s\":%.4f,\"join_s\":%.4f,\"join_sync_s\":%.4f,\"join_cpu_s\":%.4f,", r->register_cpu, r->join_s,
           r->join_sync_s, r->join_cpu);
    printf("\"setup_lines\":%" PRIu64 ",\"setup_bytes\":%" PRIu64 ",", r->setup_lines, r->setup_bytes);
}

static double rss_per_client(const run *r, long rss) { return (double)(rss - r->rss_start) / client_total(); }

static void print_memory(const run *r) {
    printf("\"rss0_kb\":%ld,\"rss_reg_kb\":%ld,\"rss_join_kb\":%ld,\"rss_end_kb\":%ld,", r->rss_start,
           r->rss_registered, r->rss_joined, r->rss_end);
    printf("\"rss_per_conn_kb\":%.2f,\"rss_per_joined_kb\":%.2f,", rss_per_client(r, r->rss_registered),
           rss_per_client(r, r->rss_joined));
    if (opt.scenario == IDLE)
        printf("\"idle_s\":%d,\"idle_cpu_s\":%.4f,\"idle_bytes\":%" PRIu64 ",\"rss_idle_per_conn_kb\":%.2f,",
               opt.idle_seconds, r->idle_cpu, r->idle_bytes, rss_per_client(r, r->rss_end));
}

static void print_traffic(const run *r) {
    const histogram *latency = &counts.latency;
    double run_s = (double)(r->ended.at - r->started.at) / 1e9;
    double cpu = r->ended.cpu - r->started.cpu;
    printf("\"sent\":%" PRIu64 ",\"deliv\":%" PRIu64 ",\"expected\":%" PRIu64 ",", counts.sent, counts.delivered,
           counts.expected);
    printf("\"run_s\":%.4f,\"msg_per_s\":%.0f,\"deliv_per_s\":%.0f,", run_s, per((double)counts.sent, run_s),
           per((double)counts.delivered, run_s));
    printf("\"p50_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"mean_us\":%.1f,",
           histogram_quantile_us(latency, .5), histogram_quantile_us(latency, .9), histogram_quantile_us(latency, .99),
           (double)latency->max / 1e3, per(latency->sum, (double)latency->count) / 1e3);
    printf("\"srv_cpu_s\":%.4f,\"srv_cpu_s_per_M\":%.3f,\"gen_cpu_s\":%.4f,", cpu,
           per(cpu, (double)counts.delivered / 1e6), r->ended.generator_cpu - r->started.generator_cpu);
}

static void print_faults(void) {
    printf("\"dup\":%" PRIu64 ",\"gap\":%" PRIu64 ",\"bad\":%" PRIu64 ",\"dead\":%" PRIu64 ",\"errs\":%" PRIu64 ",",
           counts.duplicates, counts.gaps, counts.misplaced, counts.dead, counts.errors);
    if (opt.stalled)
        printf("\"stalled\":%d,\"stalled_dropped\":%d,\"stalled_err\":\"%s\",", opt.stalled, counts.stalled_dropped,
               counts.stalled_error);
    printf("\"other_privmsg\":%" PRIu64 ",\"err\":\"%s\"", counts.other_privmsg, counts.first_error);
}

void report_print(const run *r) {
    putchar('{');
    print_arguments(r);
    print_setup(r);
    print_memory(r);
    print_traffic(r);
    print_faults();
    puts("}");
}
