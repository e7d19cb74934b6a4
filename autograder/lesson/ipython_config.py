# Copied by tools/install.sh to .venv/etc/ipython: every kernel of the course's environment starts with it.
c = get_config()  # noqa: F821 - given by traitlets when it loads this file

c.InteractiveShellApp.extensions.append("autograder.lesson.unrun")
