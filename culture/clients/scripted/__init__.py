"""The scripted backend: an agent without a model that follows a playbook."""

from culture.clients.shared.turn import Backend

BACKEND = Backend(
    name="scripted",
    runner="culture.clients.scripted.agent_runner:ScriptedRunner",
    supervisor="culture.clients.scripted.supervisor:ScriptedSupervisor",
    fields=frozenset({"playbook"}),
    skill="culture.clients.scripted",
    skill_folders=(),
    watched=False,
    finder="culture.clients.scripted.detect:found",
)
