"""The clock of this machine, and its own past; those of servers are in test_links."""

import os
import time

from culture.cli.doctor.runner import FindingSeverity
from tests.cli.doctor.conftest import Patient


def test_something_was_written_in_the_future(patient: Patient) -> None:
    file = patient.file("data/spark/ids.json")
    assert patient.found("clocks.past") == []
    later = time.time() + 86400
    os.utime(file, (later, later))
    finding = patient.one("clocks.past")
    assert finding.severity is FindingSeverity.WARNING and "ids.json" in finding.what
