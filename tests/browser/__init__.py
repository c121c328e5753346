"""A real browser with a page that talks IRC over WebSocket."""
