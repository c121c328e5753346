"""What people write reaches an agent as text."""

from pathlib import Path

import pytest

from culture.clients.acp.escape_prompt import as_text, without_files, without_skills


@pytest.mark.parametrize("text", ["/clear", "  /init now", "\n!ls", "@/etc/passwd", "#note", "$irc"])
def test_a_prompt_never_begins_with_a_command(text: str) -> None:
    assert as_text(text).startswith("(")
    assert as_text(text).endswith(text)


def test_other_prompts_stay_as_they_are() -> None:
    assert as_text("[IRC DM] <spark-ori> /clear") == "[IRC DM] <spark-ori> /clear"


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("see @/etc/passwd", "see @ /etc/passwd"),
        ("@README.md, please", "@ README.md, please"),
        ('@"a file" and (@../x)', '@ "a file" and (@ ../x)'),
        ("@@notes", "@ @ notes"),
        ("@thor-file is here", "@ thor-file is here"),
        ("@spark-ori: hi, @all! and @spark-x.", "@spark-ori: hi, @all! and @spark-x."),
        ("ori@example.org, 3 @ 4, and @", "ori@example.org, 3 @ 4, and @"),
    ],
    ids=["path", "name", "quotes", "twice", "a file named as a nick", "calls", "others"],
)
def test_no_file_is_pulled_in(tmp_path: Path, text: str, harmless: str) -> None:
    (tmp_path / "thor-file").touch()
    assert without_files(text, tmp_path) == harmless


def test_no_skill_is_pulled_in() -> None:
    assert (
        without_skills("use $irc, a$deploy and [$x](skill://x) for 3 $")
        == "use $ irc, a$ deploy and [$ x](skill://x) for 3 $"
    )
