"""What the tests share: real servers on free ports and a plain IRC client."""
