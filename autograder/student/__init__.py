"""What surrounds the chapters for a student: the start page, the doctor, the state of the course, reset, preflight."""
