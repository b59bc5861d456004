"""What is said of source code: drafts of findings on constructions, their channel counts and programs, and places."""
