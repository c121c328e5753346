"""Read-only views of ledger facts (agents, questions, tasks, spend, links), for terminal, web page and digest."""
