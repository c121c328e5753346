"""``culture mesh``: links to other servers, and invitations for machines and people."""
