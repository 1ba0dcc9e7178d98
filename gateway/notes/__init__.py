"""What a note is: pure text and values. Nothing here opens a file, a database or a connection."""
