"""A little agent that speaks ACP and does what its prompt says: ``python -m tests.clients.acp.little '{"ask": true}'``.

The steps are those of the scripted model, and some that only a protocol knows:

    [[say text]] [[think text]] [[bash command]] [[usage IN OUT …]] [[err status words]] [[hang]]
    [[stop reason]]      the turn ends for this reason
    [[long number]]      says so many letters in one line of the protocol
    [[noise text]]       writes what is no message
    [[mute]]             closes its output and lives on
    [[exit code]]        ends
    [[failed text]]      says the text, then fails with it
    [[cost amount]]      the session has cost so much so far
    [[elsewhere amount]] another session has cost so much so far
    [[echo]]             says what it was given
    [[later path]]       once that file is there says by itself, after the turn, that it is

It speaks the wire itself: who reads the protocol as the package ``acp`` does would not see where that is wrong.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Lock, Thread
from typing import Any

_STEP = re.compile(r"\[\[(\w+)(?:\s+(.*?))?\]\]", re.DOTALL)
SESSIONS = Path(".sessions")
Fields = dict[str, Any]


class Switches:
    """What it does differently."""

    ask = False
    offers = ("allow_once", "allow_always", "reject_once")
    """The kinds of answers to its questions."""
    load = True
    resume = True
    resumes = True
    """Whether it really does what ``resume`` promises."""
    login = True
    version = 1
    die_in = ""
    """The request that it does not survive."""
    hang_in = ""
    models: tuple[str, ...] = ()
    commands = ("compact",)
    spent: float | None = None
    """What a session has cost that is loaded; it tells so then."""
    deaf = False
    """It does not react to a cancellation."""

    def __init__(self, **chosen: Any) -> None:
        for name, value in chosen.items():
            if not hasattr(self, name):
                raise TypeError(f"there is no switch {name}")
            setattr(self, name, value)


class Refusal(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.answer = {"code": code, "message": message, "data": data}


class Turn:
    """A turn under way."""

    def __init__(self) -> None:
        self.usage: Fields | None = None
        self.reason = "end_turn"
        self.cancelled = False
        self.news = Event()
        """It was cancelled, or its command has ended."""

    def cancel(self) -> None:
        """Break it off."""
        self.cancelled = True
        self.news.set()


class Wire:
    """One JSON object per line: what comes in, and what goes out from several threads."""

    def __init__(self) -> None:
        self._writing = Lock()
        self._asked: dict[int, tuple[Event, Fields]] = {}

    def tell(self, method: str, params: Fields) -> None:
        """Send a notification."""
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Fields) -> Fields:
        """Send a request and wait for what comes back."""
        answered, answer = Event(), Fields()
        with self._writing:
            number = len(self._asked)
            self._asked[number] = answered, answer
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answered.wait()
        result: Fields = answer["result"]
        return result

    def answered(self, message: Fields) -> None:
        """What was asked is answered."""
        answered, answer = self._asked[message["id"]]
        answer.update(message)
        answered.set()

    def write(self, message: Fields) -> None:
        """Send a message."""
        self.line(json.dumps(message))

    def line(self, text: str) -> None:
        """Send a line, message or not."""
        with self._writing:
            sys.stdout.buffer.write(f"{text}\n".encode())
            sys.stdout.buffer.flush()


class Little:
    """The agent."""

    def __init__(self, switches: Switches) -> None:
        self._is = switches
        self._turn = Turn()
        self._calls = 0
        self._wire = Wire()
        self._model = next(iter(switches.models), "")
        self._can = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/set_config_option": self._set,
            "session/prompt": self._prompt,
        }
        if switches.resumes:
            self._can |= {"session/resume": self._resume, "session/close": self._close}

    def listen(self) -> None:
        """Hear what the other side has to say until it has nothing more."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            match message:
                case {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": str()}}:
                    if not self._is.deaf:
                        self._turn.cancel()
                case {"jsonrpc": "2.0", "method": method, "id": _}:
                    if method == "session/prompt":
                        # Here and not in its thread: the next line may cancel it.
                        self._turn = Turn()
                    Thread(target=self._answer, args=(message,), daemon=True).start()
                case {"jsonrpc": "2.0", "id": _}:
                    self._wire.answered(message)

    def _answer(self, message: Fields) -> None:
        method, answer = message["method"], Fields(jsonrpc="2.0", id=message["id"])
        try:
            if method not in self._can:
                raise Refusal(-32601, "Method not found", {"method": method})
            answer["result"] = self._can[method](message["params"])
        except Refusal as refusal:
            answer["error"] = refusal.answer
        except KeyError as missing:
            answer["error"] = Refusal(-32602, "Invalid params", {"details": f"without {missing}"}).answer
        except Exception as error:
            answer["error"] = Refusal(-32603, "Internal error", {"details": str(error)}).answer
        self._wire.write(answer)

    def _initialize(self, params: Fields) -> Fields:
        self._survive("initialize")
        if not isinstance(params["protocolVersion"], int):
            raise KeyError("protocolVersion")
        can: Fields = {"close": {}, "resume": {}} if self._is.resume else {"close": {}}
        return {
            "protocolVersion": self._is.version,
            "agentCapabilities": {"loadSession": self._is.load, "sessionCapabilities": can},
            "authMethods": [{"id": "badge", "name": "badge", "description": "Run `little login` once"}],
        }

    def _new(self, params: Fields) -> Fields:
        self._survive("new")
        self._settle(params)
        if not self._is.login:
            raise Refusal(-32000, "Authentication required")
        session = os.urandom(16).hex()
        SESSIONS.mkdir(exist_ok=True)
        (SESSIONS / session).touch()
        commands = [{"name": name, "description": name} for name in self._is.commands]
        self._update(session, "available_commands_update", availableCommands=commands)
        return {"sessionId": session, **self._options()}

    def _load(self, params: Fields) -> Fields:
        self._survive("load")
        self._settle(params)
        session = self._find(params)
        self._say(session, "said long ago")
        if self._is.spent is not None:
            self._used(session, 1000, self._is.spent)
        return self._options()

    def _resume(self, params: Fields) -> Fields:
        self._settle(params)
        self._find(params)
        return self._options()

    def _close(self, params: Fields) -> Fields:
        (SESSIONS / params["sessionId"]).unlink()
        return {}

    def _set(self, params: Fields) -> Fields:
        if (params["sessionId"], params["configId"]) and params["value"] not in self._is.models:
            raise Refusal(-32602, "Invalid params", {"details": "no such model"})
        self._model = params["value"]
        return self._options()

    def _prompt(self, params: Fields) -> Fields:
        turn, session = self._turn, params["sessionId"]
        text = "".join(block["text"] for block in params["prompt"] if block["type"] == "text")
        if text.lstrip().startswith("/"):
            self._say(session, f"did {text.split()[0]}")
        else:
            for step, rest in _STEP.findall(text) or [("say", "ok")]:
                if turn.cancelled:
                    break
                self._take(session, turn, step, rest.replace("GIVEN", text))
                if step == "echo":
                    self._say(session, json.dumps([self._model, text]))
        ended: Fields = {"stopReason": "cancelled" if turn.cancelled else turn.reason}
        return ended if turn.usage is None else {**ended, "usage": turn.usage}

    def _take(self, session: str, turn: Turn, step: str, rest: str) -> None:
        match step:
            case "say":
                for half in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
                    self._say(session, half)
            case "think":
                self._update(session, "agent_thought_chunk", content={"type": "text", "text": rest})
            case "bash":
                self._run(session, turn, rest)
            case "usage":
                read, written = (int(figure) for figure in rest.split()[:2])
                turn.usage = {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}
                self._used(session, read + written)
            case "cost":
                self._used(session, 1000, float(rest))
            case "elsewhere":
                self._used("another", 1000, float(rest))
            case "err":
                raise Refusal(-32603, "Internal error", {"details": rest})
            case "failed":
                self._say(session, rest)
                raise Refusal(-32603, f"Internal error: {rest}")
            case "later":
                Thread(target=self._later, args=(session, Path(rest)), daemon=True).start()
            case "hang":
                turn.news.wait()
            case "stop":
                turn.reason = rest
            case "long":
                self._say(session, "x" * int(rest))
            case "noise":
                self._wire.line(rest)
            case "mute":
                os.close(1)
                Event().wait()
            case "exit":
                os._exit(int(rest))

    def _later(self, session: str, path: Path) -> None:
        """Begin something by itself; a cancellation ends it, and removes the file."""
        while not path.exists():
            Event().wait(0.01)
        turn = self._turn = Turn()
        self._say(session, "it is there")
        turn.news.wait()
        path.unlink()

    def _run(self, session: str, turn: Turn, command: str) -> None:
        self._calls += 1
        call = f"call-{self._calls}"
        # The input comes after the call, as with OpenCode.
        begun = {"title": "shell", "kind": "execute", "status": "pending", "rawInput": {}}
        self._update(session, "tool_call", toolCallId=call, **begun)
        if self._is.ask and not self._may(session, call, command):
            self._update(session, "tool_call_update", toolCallId=call, status="failed")
            return
        given = {"command": command}
        self._update(session, "tool_call_update", toolCallId=call, status="in_progress", rawInput=given)
        output = TemporaryFile()  # noqa: SIM115
        shell = subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=output, process_group=0)

        def wait() -> None:
            shell.wait()
            turn.news.set()

        waiting = Thread(target=wait, daemon=True)
        waiting.start()
        turn.news.wait()
        if turn.cancelled:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        waiting.join()
        if not turn.cancelled:
            turn.news.clear()
        output.seek(0)
        shown = [{"type": "content", "content": {"type": "text", "text": output.read().decode()}}]
        self._update(session, "tool_call_update", toolCallId=call, status="completed", content=shown)

    def _may(self, session: str, call: str, command: str) -> bool:
        options = [{"optionId": f"o-{kind}", "kind": kind, "name": kind} for kind in self._is.offers]
        use = {"toolCallId": call, "kind": "execute", "title": command, "rawInput": {"command": command}}
        asked = {"sessionId": session, "toolCall": use, "options": options}
        match self._wire.ask("session/request_permission", asked)["outcome"]:
            case {"outcome": "selected", "optionId": str(chosen)}:
                self._say(session, f"({chosen})")
                return chosen.startswith("o-allow")
            case _:
                return False

    def _say(self, session: str, text: str) -> None:
        self._update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def _used(self, session: str, used: int, cost: float | None = None) -> None:
        money = {} if cost is None else {"cost": {"amount": cost, "currency": "USD"}}
        self._update(session, "usage_update", used=used, size=200_000, **money)

    def _update(self, session: str, kind: str, /, **fields: Any) -> None:
        self._wire.tell("session/update", {"sessionId": session, "update": {"sessionUpdate": kind, **fields}})

    def _options(self) -> Fields:
        if not self._is.models:
            return {}
        values = [{"value": name, "name": name} for name in self._is.models]
        model = {"type": "select", "id": "model", "name": "model", "currentValue": self._model, "options": values}
        return {"configOptions": [model]}

    def _settle(self, params: Fields) -> None:
        """Where it works and with which servers is part of whatever gives a session."""
        if not (os.path.isabs(params["cwd"]) and isinstance(params["mcpServers"], list)):
            raise Refusal(-32602, "Invalid params", {"details": "where, and with which servers?"})

    def _find(self, params: Fields) -> str:
        session: str = params["sessionId"]
        if not (SESSIONS / session).exists():
            raise Refusal(-32002, "Resource not found", {"uri": session})
        return session

    def _survive(self, request: str) -> None:
        if self._is.die_in == request:
            print("I cannot go on", file=sys.stderr, flush=True)
            os._exit(9)
        if self._is.hang_in == request:
            Event().wait()


if __name__ == "__main__":
    Little(Switches(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))).listen()
