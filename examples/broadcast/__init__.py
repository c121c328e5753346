"""One task for everybody in the room, each doing it in a way of their own, and one table of what came out."""
