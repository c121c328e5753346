"""What a team did and knows: the journal on disk, and the state that is replayed from it."""
