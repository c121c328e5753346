#define _GNU_SOURCE
#include "ircload.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

options opt = {
    .host = "127.0.0.1",
    .nick_prefix = "",
    .label = "",
    .scenario_name = "fanout",
    .port = 6667,
    .readers = 100,
    .senders = 10,
    .pairs = 1,
    .messages = 1000,
    .body_bytes = 64,
    .window = 8,
    .channel_members = 20,
    .idle_seconds = 5,
    .concurrency = 64,
    .timeout = 60,
    .seed = 12345,
};

static const char *const scenario_names[] = {"fanout", "dm", "pingpong", "storm", "channels", "idle"};

static const char usage[] =
    "usage: ircload -P port -s fanout|dm|pingpong|storm|channels|idle\n"
    "  -h host        address of the server (127.0.0.1)\n"
    "  -p pid         server process whose CPU and memory are read\n"
    "  -n clients     -S senders   -D pairs (dm)\n"
    "  -m messages    per sender; in all for channels\n"
    "  -b bytes       length of a text\n"
    "  -w window      messages per sender not yet delivered to everybody\n"
    "  -r rate        messages per second over all senders, whatever the window\n"
    "  -C channels    -k members of each (channels)\n"
    "  -J members     per channel (storm, idle)\n"
    "  -I seconds     of silence (idle)\n"
    "  -X clients     join the channel too, then stop reading (fanout)\n"
    "  -c connections opened at once\n"
    "  -x prefix      of the nicks\n"
    "  -A password    -B rotate the source address\n"
    "  -T seconds     before giving up   -L label   -Z seed\n";

static scenario scenario_of(const char *name) {
    for (size_t i = 0; i < sizeof scenario_names / sizeof *scenario_names; i++)
        if (!strcmp(name, scenario_names[i])) return (scenario)i;
    fail("unknown scenario %s", name);
}

static void take(int letter, const char *value) {
    switch (letter) {
    case 'h': opt.host = value; break;
    case 'P': opt.port = atoi(value); break;
    case 's': opt.scenario_name = value; break;
    case 'n': opt.readers = atoi(value); break;
    case 'X': opt.stalled = atoi(value); break;
    case 'S': opt.senders = atoi(value); break;
    case 'D': opt.pairs = atoi(value); break;
    case 'm': opt.messages = atoi(value); break;
    case 'b': opt.body_bytes = atoi(value); break;
    case 'w': opt.window = atoi(value); break;
    case 'r': opt.rate = atof(value); break;
    case 'C': opt.channels = atoi(value); break;
    case 'k': opt.channel_members = atoi(value); break;
    case 'J': opt.room_size = atoi(value); break;
    case 'I': opt.idle_seconds = atoi(value); break;
    case 'c': opt.concurrency = atoi(value); break;
    case 'x': opt.nick_prefix = value; break;
    case 'A': opt.password = value; break;
    case 'B': opt.rotate_source = true; break;
    case 'p': opt.server_pid = atoi(value); break;
    case 'T': opt.timeout = atof(value); break;
    case 'L': opt.label = value; break;
    case 'Z': opt.seed = strtoull(value, NULL, 0) | 1; break; /* the generator never leaves zero */
    default: fputs(usage, stderr); exit(2);
    }
}

static void check(void) {
    if (opt.readers < 1 || opt.senders < 1 || opt.pairs < 1 || opt.messages < 1 || opt.stalled < 0)
        fail("-n, -S, -D and -m take a positive number");
    if (opt.body_bytes < 0 || opt.body_bytes > 4000) fail("-b takes 0 to 4000");
    if (opt.scenario == FANOUT && opt.senders > opt.readers) fail("more senders than clients");
    if (opt.stalled && opt.scenario != FANOUT) fail("-X goes with -s fanout");
}

void options_parse(int argc, char **argv) {
    int letter;
    while ((letter = getopt(argc, argv, "h:P:s:n:X:S:D:m:b:w:r:C:k:J:I:c:x:A:Bp:T:L:Z:")) != -1)
        take(letter, optarg);
    opt.scenario = scenario_of(opt.scenario_name);
    if (opt.scenario == DM) opt.readers = opt.pairs * 2;
    if (opt.scenario == PINGPONG) opt.readers = 2;
    check();
}

int client_total(void) { return opt.readers + opt.stalled; }
