"""Ways to work together, each as a folder that runs: agents that follow playbooks, on a server of their own."""
