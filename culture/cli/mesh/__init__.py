"""``culture mesh``: links to other servers, and invitations.

- command: `culture mesh list`, `link`, `unlink`, `rotate`
- invite: `culture mesh invite`, `invites`, `uninvite`, and the invitation code
- join: `culture mesh join`
- links: reads, checks, changes and describes the links of a server

The flow of an invitation: invite.invite stores its digest and prints the code → join.join reads the code there and
asks this server once (ENROL or REDEEM) → both sides store the link or the account.
"""
