"""The rules of docs/architecture.md: imports point down, one toolbox, names and folders that a stranger can read."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "culture"

# Package → what it may import of ours; a package always may import itself.
MAY_IMPORT = {
    "runtime": set(),
    "protocol": set(),
    "lib": {"protocol"},
    "config": {"lib", "protocol"},
    "server": {"lib", "protocol", "config"},
    "skills": {"server", "lib", "protocol", "config"},
    "federation": {"server", "lib", "protocol", "config"},
    "transport": {"lib", "protocol", "config"},
    "clients.shared": {"transport", "lib", "protocol", "config"},
    "clients.<backend>": {"clients.shared", "lib"},
    "mcp_http": {"lib", "protocol", "config"},
    "wiki": {"mcp_http", "lib", "protocol", "config"},
    "bridge": {"transport", "mcp_http", "lib", "protocol", "config"},
    "ledger_views": {"transport", "lib", "protocol", "config"},
    "web": {"ledger_views", "transport", "mcp_http", "lib", "protocol", "config", "wiki"},
    "orchestrator": {"clients.shared", "transport", "wiki", "lib", "protocol", "config"},
}
# Two-line forwards under names that the founding documents give.
FORWARDS = {
    "culture.clients.claude.config": {"config"},
    "culture.clients.claude.irc_transport": {"transport"},
}
COMPOSES_EVERYTHING = {"cli", "__main__"}

# What the lower packages may take from others, beside the standard library.
OUTSIDE = {
    "runtime": set(),
    "protocol": set(),
    "lib": set(),
    "config": {"pydantic", "pydantic_core", "ruamel"},
    "server": {"OpenSSL", "cryptography", "jwt"},
}


def package_of(module: str) -> str:
    """``culture.clients.claude.supervisor`` belongs to ``clients.claude``."""
    _, *names = module.split(".")
    if not names:
        return ""
    return ".".join(names[:2]) if names[0] == "clients" else names[0]


def imported(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The modules a source names: ``import``, ``from``, relative ones, and ``import_module("…")``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                home = module.split(".")[: len(module.split(".")) - level + is_package] if level else []
                origin = ".".join([*home, base] if base else home)
                # ``from culture import server`` names a package too.
                yield from ([f"culture.{alias.name}" for alias in names] if origin == "culture" else [origin])
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield name


def allowed(package: str) -> set[str]:
    """What a package may import of ours; every backend is alike, and all but the protocol may use the runtime."""
    if package.startswith("clients.") and package not in MAY_IMPORT:
        return MAY_IMPORT["clients.<backend>"] | {"runtime"}
    return MAY_IMPORT[package] | ({"runtime"} - {package} if package != "protocol" else set())


def tree_with(source: str, *names: str) -> ast.Module:
    """The syntax tree of a source that has one of these names, else an empty one: parsing takes long."""
    return ast.parse(source if any(name in source for name in names) else "")


def offences(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports of a module that the rule forbids."""
    package = package_of(module)
    if package in COMPOSES_EVERYTHING:
        return []
    found = []
    for name in imported(ast.parse(source), module, is_package):
        if name.split(".")[0] == "culture":
            target = package_of(name)
            known = target in MAY_IMPORT or target in COMPOSES_EVERYTHING or target.startswith("clients")
            if known and target != package and target not in allowed(package) | FORWARDS.get(module, set()):
                found.append(f"{module} imports {name}")
        elif package in OUTSIDE and name.split(".")[0] not in OUTSIDE[package] | sys.stdlib_module_names:
            found.append(f"{module} imports {name}")
    return found


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours and where it is."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_imports_point_down() -> None:
    found = []
    for module, path in modules():
        found += offences(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    assert found == []


@pytest.mark.requirement("A05", "A08")
def test_the_tree_is_the_one_that_was_planned() -> None:
    folders = ("server", "clients/claude", "protocol", "protocol/extensions", "skills")
    assert [folder for folder in folders if not (SOURCE / folder).is_dir()] == []
    assert [folder for folder in ("packages", "docs") if not (ROOT / folder).is_dir()] == []
    beside = {path.parent.name for path in (SOURCE / "clients").glob("*/agent_runner.py")}
    assert {"claude", "codex", "copilot", "acp"} <= beside


def test_every_package_has_its_place_in_the_table() -> None:
    packages = {package_of(module) for module, _ in modules()} - {"", "clients"} - COMPOSES_EVERYTHING
    assert {package for package in packages if not package.startswith("clients.")} <= MAY_IMPORT.keys()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("culture.protocol.message", "import culture.config"),
        ("culture.protocol.message", "from culture import server"),
        ("culture.protocol.message", "import pydantic"),
        ("culture.protocol.names", "from culture.lib import git"),
        ("culture.lib.git", "from culture.config import paths"),
        ("culture.lib.git", "import pydantic"),
        ("culture.server.core.router", "from culture.cli import main"),
        ("culture.server.core.router", "from ...skills.history import store"),
        ("culture.server.core.router", "def late():\n    from culture.federation import mesh"),
        ("culture.server.core.router", "import claude_agent_sdk"),
        ("culture.config.load", "importlib.import_module('culture.server')"),
        ("culture.transport.irc", "from culture.server.events import Said"),
        ("culture.skills.logger", "from culture.federation.log import EventLog"),
        ("culture.wiki.server", "from culture.bridge.tools import build"),
        ("culture.mcp_http.server", "from culture.wiki.tools import build"),
        ("culture.clients.shared.daemon", "from culture.clients.claude import BACKEND"),
        ("culture.clients.codex.agent_runner", "from culture.clients.claude import BACKEND"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(offences(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "culture.server.core.router",
            "from culture.protocol import Message\nfrom .network import Network\nimport asyncio",
        ),
        ("culture.clients.codex.agent_runner", "from culture.clients.shared.base import QueuedRunner\nimport openai"),
        ("culture.web.pages", "from culture.wiki import pages"),
        ("culture.cli.server.command", "from culture.server.ircd import IRCd\nimport typer"),
    ],
)
def test_an_allowed_import_is_not(module: str, source: str) -> None:
    assert offences(source, module) == []


@pytest.mark.requirement("A07")
@pytest.mark.parametrize("package", ["server", "protocol"])
def test_the_server_knows_no_agent(package: str) -> None:
    """A07: no code of the server names a model, a vendor or a program that runs one."""
    vendors = ("claude", "anthropic", "openai", "codex", "copilot", "gemini")
    for path in sorted((SOURCE / package).rglob("*.py")):
        text = path.read_text(encoding="utf-8").lower()
        assert [vendor for vendor in vendors if vendor in text] == [], path


# Packages and modules that are rewritten soon: their names and folders are mended then.
REBUILT_LATER = ("clients/shared/", "federation/", "skills/history/", "skills/keeping.py")
MOST_MODULES = 25
BANNED = re.compile(
    r"around|asked|beside|board|courier|desk|door|doorman|errands?|figures|found|given|house|keeper|kept|known"
    r"|news|parts|picture|purse|remains|said|scene|scribe|seats?|shelf|shown|standing|told|wanted|whom|words|\w+ing"
)
"""Module names that say nothing: gerunds, participles, words of other trades."""
ALLOWED_STEMS = {
    "sasl_framing": "framing is the usual word for cutting a stream into messages",
    "hiring": "to be renamed",
    "parts": "to be merged",
}
SAME_CLASS_NAME = {
    "Message": "a line of IRC in `protocol.message`; what a program reads from `transport`, whose path is documented",
}

# Who renames or locks files without `lib.files`, and why.
OWN_RENAMES = {
    "culture/lib/files.py": "is the one place",
    "culture/lib/process/log_rotation.py": "rotates logs: older files move one number up, nothing is replaced",
    "culture/server/backup/restore.py": "exchanges whole folders",
    "culture/server/core/changes/users.py": "renames users",
    "culture/server/core/state.py": "renames users",
    "culture/server/subscriptions/read_markers.py": "moves an unreadable file aside",
    "culture/skills/audit/file.py": "moves a full file aside; rewritten with the writers",
    "culture/orchestrator/repository/worktrees.py": "moves a folder aside",
    "culture/wiki/pages.py": "names a new repository, a folder, when it is complete",
    "culture/wiki/queue.py": "moves a refused write aside",
}


def in_scope(path: Path) -> bool:
    """Whether a module is held to the rules about names and folders already."""
    return not path.relative_to(SOURCE).as_posix().startswith(REBUILT_LATER)


def renames_or_locks(tree: ast.AST) -> list[str]:
    """The calls of a module that rename or lock files."""
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="fcntl"), attr="flock" | "lockf" as name)):
                calls.append(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="replace" | "rename" | "renames" as name)):
                calls.append(name)
            # Of all types that have one, only the `replace` of a path takes one argument alone.
            case ast.Call(func=ast.Attribute(attr="replace" | "rename" as name), args=[_], keywords=[]):
                calls.append(name)
    return calls


def test_files_are_replaced_and_locked_in_one_place() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for _, path in modules()
        if not path.is_relative_to(SOURCE / "skills" / "history")
        and renames_or_locks(tree_with(path.read_text(encoding="utf-8"), "flock", "lockf", "replace", "rename"))
    }
    assert sorted(users - OWN_RENAMES.keys()) == [], "use culture.lib.files"
    assert sorted(OWN_RENAMES.keys() - users) == [], "the reason is not needed any more"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("os.replace(a, b)", True),
        ("path.rename(other)", True),
        ("path.replace(other)", True),
        ("fcntl.flock(file, fcntl.LOCK_EX)", True),
        ("text.replace('a', 'b')", False),
        ("now.replace(tzinfo=UTC)", False),
        ("replace(note, ready=True)", False),
    ],
)
def test_a_rename_or_lock_is_recognised(source: str, found: bool) -> None:
    assert bool(renames_or_locks(ast.parse(source))) is found


def test_module_names_say_what_is_inside() -> None:
    paths = [path for _, path in modules() if in_scope(path)]
    assert [path for path in paths if BANNED.fullmatch(path.stem) and path.stem not in ALLOWED_STEMS] == []


def test_no_folder_has_more_modules_than_one_can_read() -> None:
    sizes: dict[Path, int] = defaultdict(int)
    for _, path in modules():
        if in_scope(path) and path.name != "__init__.py":
            sizes[path.parent] += 1
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_class_names_stand_for_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module, path in modules():
        if in_scope(path):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(module)
    twice = {name: where for name, where in places.items() if len(where) > 1 and name not in SAME_CLASS_NAME}
    assert twice == {}


# Package → what it folds with ``lower`` or ``casefold``. Names of IRC are folded by ``protocol.names.fold`` alone.
OTHER_FOLDING = {
    "bridge": "scheme and host of a URL, words of the environment",
    "cli": "answers at the terminal, control words, outcomes, error texts, names made of folders and hosts",
    "clients.shared": "answers, options, tags, control words, outcomes, host names, HTTP header fields",
    "config": "host names, web origins, fingerprints, names of distributions",
    "ledger_views": "outcomes",
    "lib": "HTTP header fields",
    "mcp_http": "host names, web origins",
    "orchestrator": "roles, names of models, a model's yes or no",
    "protocol": "the one function that folds names, and names that look alike",
    "server": "HTTP header fields, web origins, fingerprints, digests, media types, topics of HELP",
    "skills": "text to search, tags, letters of file names",
    "transport": "fingerprints, error texts",
    "web": "HTTP header fields, host names, slash commands, ids of questions",
    "wiki": "names of files, titles of pages",
}
_NAME_OF_IRC = re.compile(r"(?<![a-z])(nick|channel|place|account|member|sender|owner|room)s?(?![a-z])")
# Tests that sleep: they test time itself, pace a load, or watch a foreign program that gives no event to wait for.
SLEEPERS = frozenset(
    {
        "cli/test_demo.py",
        "clients/acp/test_runner.py",
        "clients/conformance.py",
        "clients/patience.py",
        "clients/shared/test_reporting.py",
        "clients/shared/test_supervision.py",
        "clients/shared/webhook/test_client.py",
        "federation/test_backfill.py",
        "federation/test_convergence.py",
        "federation/test_facts.py",
        "lib/test_background.py",
        "mcp_http/test_admission.py",
        "proof/test_idle.py",
        "proof/test_trouble.py",
        "support/agentstorm.py",
        "support/clock.py",
        "support/hours.py",
        "support/mesh.py",
        "support/model/pace.py",
        "support/ngircd.py",
        "support/proxy.py",
        "support/receiver.py",
        "support/rumours.py",
        "support/storm.py",
        "support/teamstorm.py",
        "support/telling.py",
        "support/waiting.py",
        "test_proxy.py",
        "web/saying.py",
        "web/test_rooms.py",
        "wiki/test_together.py",
    }
)
LONGEST_SLEEP = 2.5  # seconds, where a number is written down


def folded(source: str) -> Iterator[str]:
    """What a source folds by itself, as it is written there: ``nick`` for ``nick.lower()``."""
    for node in ast.walk(tree_with(source, "lower", "casefold")):
        if isinstance(node, ast.Attribute) and node.attr in ("lower", "casefold"):
            yield ast.unparse(node.value)


def test_names_are_folded_in_one_place() -> None:
    """A name of IRC is compared by ``protocol.names.fold``; a new package in the table says what else it folds."""
    texts = {
        (package_of(module), text) for module, path in modules() for text in folded(path.read_text(encoding="utf-8"))
    }
    assert {package for package, _ in texts} - OTHER_FOLDING.keys() == set()
    assert sorted(text for _, text in texts if _NAME_OF_IRC.search(text)) == []


@pytest.mark.parametrize(("source", "text"), [("sender.nick.lower()", "sender.nick"), ("{nick.casefold(): 1}", "nick")])
def test_a_fold_of_its_own_is_found(source: str, text: str) -> None:
    assert [*folded(source)] == [text]
    assert _NAME_OF_IRC.search(text)


def sleeps(source: str) -> Iterator[float | None]:
    """The seconds of each sleep in a source, None where that is no number; passing the turn (0) is none."""
    for node in ast.walk(tree_with(source, "sleep")):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("asyncio" | "time"), attr="sleep") | ast.Name("sleep"), args=[first]
            ):
                seconds = first.value if isinstance(first, ast.Constant) else None
                if seconds != 0:
                    yield seconds


def test_only_these_tests_sleep() -> None:
    """A test waits for what it expects: a sleep is too short on a busy machine, and too long on every other."""
    root = ROOT / "tests"
    found = {
        path.relative_to(root).as_posix(): [*sleeps(path.read_text(encoding="utf-8"))] for path in root.rglob("*.py")
    }
    # In the simulator time is virtual.
    found = {name: seconds for name, seconds in found.items() if not name.startswith("simulation/")}
    sleeping = {name for name, seconds in found.items() if seconds}
    assert sorted(sleeping - SLEEPERS) == []
    assert sorted((SLEEPERS & found.keys()) - sleeping) == []
    assert {name for name, seconds in found.items() if any((each or 0) > LONGEST_SLEEP for each in seconds)} == set()


@pytest.mark.parametrize(
    ("source", "seconds"),
    [("await asyncio.sleep(0)", []), ("time.sleep(3)", [3]), ("await sleep(pause)", [None]), ("self.sleep(1)", [])],
)
def test_a_sleep_is_found(source: str, seconds: list[float | None]) -> None:
    assert [*sleeps(source)] == seconds


# Packages that take clock, chance, threads, databases and sockets from `culture.runtime`: these can be simulated.
ON_THE_RUNTIME: tuple[str, ...] = (
    "culture/clients/shared/",
    "culture/federation/",
    "culture/server/",
    "culture/skills/",
    "culture/transport/",
)
FROM_THE_RUNTIME = {"time", "random", "secrets", "threading", "uuid", "select"}
CONVERSIONS = {"gmtime", "strftime"}  # of ``time``: they read no clock, if they are given a time
# Modules of these packages that use the machine itself, and why.
OFF_THE_RUNTIME: dict[str, str] = {
    "culture/clients/shared/ending.py": "ends daemons from the command line",
    "culture/clients/shared/main.py": "the program of a daemon",
    "culture/clients/shared/sandbox/bubblewrap.py": "starts programs in a sandbox",
    "culture/clients/shared/sandbox/forwarder.py": "a program in a sandbox",
    "culture/clients/shared/sandbox/gate.py": "the network of programs in a sandbox",
    "culture/clients/shared/sandbox/mounts.py": "the disk of programs in a sandbox",
    "culture/clients/shared/skill/call.py": "a part of the irc_client tool, whose start must take no time",
    "culture/clients/shared/skill/hook.py": "a program of its own, whose start must take no time",
    "culture/clients/shared/skill/irc.py": "a part of the irc_client tool, whose start must take no time",
    "culture/clients/shared/skill/irc_client.py": "a program of its own, whose start must take no time",
    "culture/clients/shared/watchdog_process.py": "a program of its own, without our packages",
}


def on_the_runtime() -> Iterator[tuple[str, ast.Module]]:
    """The modules that take everything from the runtime: path and source tree."""
    for _, path in modules():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(ON_THE_RUNTIME) and name not in OFF_THE_RUNTIME:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def around_the_runtime(tree: ast.AST) -> Iterator[str]:
    """What a module takes from the standard library although the runtime has it."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in FROM_THE_RUNTIME)
            case ast.ImportFrom(module="time", names=names) if {alias.name for alias in names} <= CONVERSIONS:
                continue
            case ast.ImportFrom(module=name) if name in FROM_THE_RUNTIME:
                yield name or ""
            case ast.Call(func=ast.Attribute(value=ast.Name("datetime"), attr="now" | "utcnow")):
                yield "datetime.now"
            case ast.Call(func=ast.Attribute(value=ast.Name("os"), attr="fsync" | "fdatasync" | "urandom" as name)):
                yield f"os.{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name("sqlite3"), attr="connect")):
                yield "sqlite3.connect"
            case ast.Call(func=ast.Attribute(value=ast.Name("socket"), attr="socket")):
                yield "socket.socket"
            case ast.Call(func=ast.Name("ThreadPoolExecutor")):
                yield "ThreadPoolExecutor"


def test_clock_chance_threads_and_disk_come_from_the_runtime() -> None:
    found = {name: sorted({*around_the_runtime(tree)}) for name, tree in on_the_runtime()}
    assert {name: uses for name, uses in found.items() if uses} == {}
    assert [name for name in OFF_THE_RUNTIME if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("import time", "time"),
        ("from threading import Lock", "threading"),
        ("datetime.now(UTC)", "datetime.now"),
        ("os.fsync(file)", "os.fsync"),
        ("sqlite3.connect(path)", "sqlite3.connect"),
        ("with socket.socket() as probe: pass", "socket.socket"),
        ("ThreadPoolExecutor(1)", "ThreadPoolExecutor"),
        ("from time import gmtime, time", "time"),
    ],
)
def test_a_way_around_the_runtime_is_found(source: str, use: str) -> None:
    assert [*around_the_runtime(ast.parse(source))] == [use]


def with_runtime(tree: ast.Module) -> Iterator[str]:
    """The functions and classes of a module that take a ``runtime`` by name."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                is_maker = isinstance(each, ast.FunctionDef) and each.name == "__init__" and _takes_runtime(each.args)
                has_field = isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "runtime" and each.value
                if is_maker or has_field:
                    yield node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _takes_runtime(node.args):
            yield node.name


def _takes_runtime(arguments: ast.arguments) -> bool:
    return "runtime" in (each.arg for each in [*arguments.args, *arguments.kwonlyargs])


def without_runtime(tree: ast.Module, module: str, makers: set[str]) -> Iterator[str]:
    """The calls of such functions and classes, given by their full names, that do not pass ``runtime=`` on."""
    names = {name: f"{module}.{name}" for name in with_runtime(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("culture"):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(name)):
                called = names.get(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(name), attr=attribute)):
                called = f"{names.get(name)}.{attribute}"
            case _:
                continue
        if called in makers and "runtime" not in {each.arg for each in node.keywords}:
            yield called


def test_the_runtime_is_passed_on() -> None:
    """Whatever takes a runtime, which is the real one by default, is given it, or the simulator would not be asked."""
    makers = {
        f"{module}.{name}"
        for module, path in modules()
        for name in with_runtime(tree_with(path.read_text(encoding="utf-8"), "runtime"))
    }
    missing = {
        name: sorted({*without_runtime(tree, name.removesuffix(".py").replace("/", "."), makers)})
        for name, tree in on_the_runtime()
    }
    assert {name: calls for name, calls in missing.items() if calls} == {}


@pytest.mark.parametrize(
    ("source", "called"),
    [
        (
            "class Log:\n    def __init__(self, path, runtime=REAL): ...\nLog(1)\nLog(1, runtime=runtime)\n",
            ["here.Log"],
        ),
        ("from culture.logs import Log\nLog(1)\nLog(1, runtime=runtime)", ["culture.logs.Log"]),
        ("from culture import logs\nlogs.Log(1)\nlogs.Log(1, runtime=runtime)", ["culture.logs.Log"]),
        ("from culture.other import Log\nLog(1)", []),
    ],
)
def test_a_runtime_that_is_not_passed_on_is_found(source: str, called: list[str]) -> None:
    assert [*without_runtime(ast.parse(source), "here", {"here.Log", "culture.logs.Log"})] == called
