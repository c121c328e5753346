"""Three agents try three answers to one question at the same time, and share what they did as links to commits."""
