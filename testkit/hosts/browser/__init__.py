"""Open WebUI's pages in headless Chromium."""
