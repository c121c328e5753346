"""Runs what takes too long for every day, and keeps what came of it under docs/evidence/."""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EVIDENCE = ROOT / "docs" / "evidence"

_CLOSING = re.compile(r"(\d+) (passed|failed|skipped|deselected|xfailed|xpassed|errors?)\b")
_DURATION = re.compile(r" in [\d.]+s\b")

_CHANGED = re.compile(r"(\d+) (?:insertion|deletion)")

MOST_COMMITS = 60
"""A record that is older than so many commits is stale."""
LARGE_CHANGE = 0.2
"""A record is stale when more than this part of the lines that it concerns was added or deleted since."""

FIGURES = "{figures}"
SEED = "{seed}"


@dataclass(frozen=True, slots=True)
class Proof:
    """A command that shows something; it finds its seed in $PROOF_SEED and leaves figures as a JSON object.

    They go into the file that stands for FIGURES among its words, which is also in $PROOF_FIGURES; SEED stands for the
    seed.
    """

    name: str
    shows: str
    command: Sequence[str]
    needs: str = ""
    concerns: Sequence[str] = ("culture",)
    """The folders whose large change makes the record stale."""


PROOFS = {
    proof.name: proof
    for proof in (
        Proof(
            "irctest",
            "the portable part of the conformance suite progval/irctest",
            ("make", "--no-print-directory", "irctest"),
            needs="IRCTEST",
            concerns=("culture/server", "culture/protocol"),
        ),
        Proof(
            "bench",
            "every scenario beside other servers, interleaved, every delivery verified",
            (sys.executable, "-m", "bench", "--check", "--json", FIGURES),
            concerns=("culture/server", "culture/protocol"),
        ),
        Proof(
            "slowreader",
            "a client that stops reading: what the others notice of it",
            (sys.executable, "-m", "bench.slow_reader", "--json", FIGURES),
            concerns=("culture/server", "culture/protocol"),
        ),
        Proof(
            "load",
            "500 clients in one channel hear 10,000 messages, each once and in order (B3)",
            (sys.executable, "-m", "bench.crowd", "--json", FIGURES),
            concerns=("culture/server", "culture/protocol"),
        ),
        Proof(
            "soak",
            "thirty agents and five people talk for two hours: memory and descriptors stay flat (B20)",
            (
                sys.executable,
                "-m",
                "bench.soak",
                "--minutes",
                os.environ.get("PROOF_MINUTES") or "120",
                "--json",
                FIGURES,
            ),
        ),
        Proof(
            "killstorm",
            "kill -9 at 200 points under traffic: every message receipted as stored is there, once and in order (B12)",
            (sys.executable, "-m", "pytest", "--timeout=0", "tests/proof/test_killstorm.py"),
            concerns=("culture/server", "culture/skills/history", "culture/lib"),
        ),
        Proof(
            "trouble",
            "the history locked for ten seconds, then its disk full: people talk on, receipts are withheld (B10, B11)",
            (sys.executable, "-m", "pytest", "--timeout=0", "tests/proof/test_trouble.py"),
            concerns=("culture/server", "culture/skills/history"),
        ),
        Proof(
            "properties",
            "every property of the suite with examples of another seed",
            (sys.executable, "-m", "pytest", "-m", "hypothesis", f"--hypothesis-seed={SEED}", "tests"),
        ),
        Proof(
            "mutants",
            "a seeded sample of 200 small changes to the code: how many make a test fail",
            (
                sys.executable,
                "-m",
                "tools.mutants",
                "--minutes",
                os.environ.get("PROOF_MINUTES") or "60",
                "--json",
                FIGURES,
            ),
        ),
        Proof(
            "history",
            "fan100 with the history on and off in turn: what it costs, and every message found on disk",
            (sys.executable, "-m", "bench.history", "--json", FIGURES),
            concerns=("culture/server", "culture/skills/history"),
        ),
        Proof(
            "mesh",
            "five servers, links cut and half open, two kills: every history is the same afterwards (D5-D9)",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_mesh.py"),
            concerns=("culture/federation", "culture/skills/history", "culture/server"),
        ),
        Proof(
            "simulation",
            "20,000 seeds of simulated worlds with 2, 3 and 5 real servers: crashes, power losses, cuts, full disks, "
            "wrong clocks; nothing receipted is lost, nothing comes twice, all servers agree",
            (sys.executable, "-m", "tests.simulation.proof", "--json", FIGURES),
            concerns=("culture/federation", "culture/skills/history", "culture/skills/ledger", "culture/server"),
        ),
        Proof(
            "delivery",
            "six agents on three servers, 100 kills of either: all receipted is given, nothing twice unmarked (E22)",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_delivery.py"),
            concerns=("culture/clients/shared", "culture/transport", "culture/federation"),
        ),
        Proof(
            "story",
            "500 messages to six agents, 40 kills of these and of three servers: culture trace tells the story of each",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_story.py"),
            concerns=("culture/clients/shared", "culture/skills", "culture/federation"),
        ),
        Proof(
            "patience",
            "a person answers the real Claude Code after 130 s, when its shell would not wait any more: the call has "
            "returned before, and the answer is a prompt with its sender (H8)",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_patience.py"),
            concerns=("culture/clients/shared", "culture/clients/claude"),
        ),
        Proof(
            "wakeups",
            "a cron of the real Claude Code falls due twice while its agent is paused: no request to the model, and "
            "one prompt after resume, in the place where it was planned",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_wakeups.py"),
            concerns=("culture/clients/shared", "culture/clients/claude"),
        ),
        Proof(
            "team",
            "a team of ten with forty tasks, its orchestrator, members and server killed for five minutes: each task "
            "comes to an end once, nothing that was written is lost",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_team.py"),
            concerns=("culture/orchestrator", "culture/clients/shared"),
        ),
        Proof(
            "teamkills",
            "kill -9 of an orchestrator at every step of a task and of a shift change: all is done, once (I1-I8, I20)",
            (sys.executable, "-m", "pytest", "--timeout=0", "tests/proof/test_teamkills.py"),
            concerns=("culture/orchestrator",),
        ),
        Proof(
            "idle",
            "thirty agents that nobody calls ask no model, for ten minutes or $PROOF_MINUTES; 10,000 calls cost one of "
            "them two turns (E8, with an hour E33)",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_idle.py"),
            concerns=("culture/clients/shared", "culture/transport"),
        ),
        Proof(
            "start",
            "thirty agents started at once by one command: all take prompts and are in their channel within 20 s (E25)",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_start.py"),
            concerns=("culture/clients/shared", "culture/cli/agents", "culture/transport"),
        ),
        Proof(
            "agents",
            "an agent's daemon: how soon it is there, what it holds, how soon a call reaches its agent",
            (sys.executable, "-m", "bench.agents", "--json", FIGURES),
            concerns=("culture/clients/shared", "culture/transport"),
        ),
        Proof(
            "agentprograms",
            "every program that speaks ACP and could be had keeps the contract of a backend; known limits are named",
            (sys.executable, "-m", "pytest", "--timeout=180", "tests/proof/test_agentprograms.py"),
            concerns=("culture/clients/acp", "culture/clients/shared"),
        ),
        Proof(
            "store",
            "the history's store with a million messages: how long each question takes",
            (sys.executable, "-m", "bench.store", "--json", FIGURES),
            concerns=("culture/skills/history",),
        ),
        Proof(
            "meshbench",
            "two linked servers: relay, latency per hop, burst",
            (sys.executable, "-m", "bench.mesh", "--json", FIGURES),
            concerns=("culture/federation", "culture/server"),
        ),
        Proof(
            "first",
            "a clone, an empty home folder, `make up`: seconds until the page shows the guide's first answer (J7)",
            (sys.executable, "-m", "bench.first", "--json", FIGURES),
            concerns=("culture/cli", "culture/web"),
        ),
        Proof(
            "injection",
            "250 strings of BIPIA and AgentDojo sent to an agent every way there is: no prompt imitates the frame, "
            "nothing is obeyed, nothing invisible is left",
            (sys.executable, "-m", "pytest", "--timeout=0", "-s", "tests/proof/test_injection.py"),
            needs="DATA",
            concerns=("culture/clients/shared", "culture/protocol"),
        ),
        Proof(
            "simulationagents",
            "200 seeds of twenty virtual minutes of six real daemons on two servers, killed and cut off: every call of "
            "a person is given once or marked, answered once, within the budget, each question has one outcome",
            (
                *(sys.executable, "-m", "tests.simulation.agents", "--seed", "1000", "--count", "200"),
                *("--jobs", str(os.cpu_count() or 1), "--figures", FIGURES),
            ),
            concerns=("culture/clients/shared", "culture/transport", "tests/simulation/agents"),
        ),
        Proof(
            "simulationweek",
            "a week of thirty agents on two servers in virtual time, a call every ten minutes, kills and cuts: the "
            "same holds",
            (
                *(sys.executable, "-m", "tests.simulation.agents", "--agents", "30", "--days", "7"),
                *("--every", "2400", "--trouble", "5400", "--seed", SEED, "--figures", FIGURES),
            ),
            concerns=("culture/clients/shared", "culture/transport", "tests/simulation/agents"),
        ),
        Proof(
            "simulationbugs",
            "twenty bugs, listed before the simulator was adjusted to them: how many seeds find each, 400 at most",
            (sys.executable, "-m", "tests.simulation.injected", "--json", FIGURES),
            concerns=("culture/federation", "culture/skills/history", "culture/server", "tests/simulation"),
        ),
        Proof(
            "simulationhostile",
            "a peer with a valid link forges, repeats, floods and lies: honest servers agree, and nobody is misquoted",
            (
                *(sys.executable, "-m", "tests.simulation", "--hostile", "--servers", "3"),
                *("--count", "500", "--keep-going", "--figures", FIGURES),
            ),
            concerns=("culture/federation", "culture/server", "tests/simulation"),
        ),
        Proof(
            "fuzz",
            "random bytes and grammar-aware garbage: no crash, memory flat",
            (sys.executable, "-m", "pytest", "--timeout=0", "tests/proof/test_fuzz.py"),
            concerns=("culture/server", "culture/protocol"),
        ),
    )
}


def _git(*words: str, root: Path = ROOT) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def _run(command: Sequence[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """Run, show the output as it comes, and return the status and the last lines."""
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines = [*lines[-19:], line.rstrip()]
    return process.returncode, lines


def closing_figures(lines: Sequence[str]) -> dict[str, int]:
    """What pytest's closing line counts; empty when there is none."""
    for line in reversed(lines):
        if _DURATION.search(line) and (found := _CLOSING.findall(line)):
            return {word: int(number) for number, word in found}
    return {}


def _figures(path: Path) -> dict[str, Any]:
    """What the command left, or nothing."""
    text = path.read_text(encoding="utf-8")
    return dict(json.loads(text)) if text else {}


def run(proof: Proof, seed: int, evidence: Path = EVIDENCE) -> bool:
    """Run one proof and write its record; True when it held."""
    began, clock, load = datetime.now(UTC), time.monotonic(), os.getloadavg()[0]
    commit, clean = _git("rev-parse", "HEAD"), not _git("status", "--porcelain", "--", "culture", "bench", "tests")
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        environment = {**os.environ, "CULTURE_PROOF": "1", "PROOF_SEED": str(seed), "PROOF_FIGURES": figures.name}
        command = [word.replace(FIGURES, figures.name).replace(SEED, str(seed)) for word in proof.command]
        status, lines = _run(command, environment)
        said = {**closing_figures(lines), **_figures(Path(figures.name))}
    seconds = time.monotonic() - clock
    surroundings = f"{seconds / 60:.1f} minutes, load {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    record = {
        "name": proof.name,
        "shows": f"{proof.shows} ({surroundings})",
        "held": status == 0,
        "commit": commit,
        "clean": clean,
        "seed": seed,
        "began": began.isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}",
        "figures": said,
    }
    evidence.mkdir(parents=True, exist_ok=True)
    (evidence / f"{proof.name}.json").write_text(
        json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return status == 0


def why_stale(name: str, evidence: Path = EVIDENCE, root: Path = ROOT) -> str:
    """Why the record of a proof says nothing of today's code any more; empty while it does."""
    record = json.loads((evidence / f"{name}.json").read_text(encoding="utf-8"))
    commit = str(record["commit"])
    if not record.get("held"):
        return "the run did not hold"
    if subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=root, capture_output=True, check=False
    ).returncode:
        return f"its commit {commit[:10]} is in no branch any more"
    later = int(_git("rev-list", "--count", f"{commit}..HEAD", root=root))
    if later > MOST_COMMITS:
        return f"{later} commits old"
    concerns = [path for path in PROOFS[name].concerns if (root / path).exists()]
    changed = sum(
        map(int, _CHANGED.findall(_git("diff", "--shortstat", "-M", commit, "HEAD", "--", *concerns, root=root)))
    )
    lines = sum(len(path.read_bytes().splitlines()) for folder in concerns for path in (root / folder).rglob("*.py"))
    if changed > lines * LARGE_CHANGE:
        return f"{changed} of {lines} lines of what it concerns changed since"
    return ""


def main() -> None:
    """Run all proofs, or the ones named; each leaves docs/evidence/NAME.json."""
    parser = argparse.ArgumentParser(prog="make proof", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(PROOFS)}")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PROOF_SEED", "0")))
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROOFS]:
        parser.error(f"no proof is called {', '.join(unknown)}; there are {', '.join(PROOFS)}")
    failed = []
    for proof in [PROOFS[name] for name in options.names or PROOFS]:
        if proof.needs and not os.environ.get(proof.needs):
            print(f"{proof.name}: not run, it needs {proof.needs}=<path>", file=sys.stderr)
            failed += [proof.name] if options.names else []
        elif not run(proof, options.seed):
            failed.append(proof.name)
    if failed:
        sys.exit(f"did not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
