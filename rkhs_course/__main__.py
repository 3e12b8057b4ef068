"""Coursework on the command line.

    python -m rkhs_course [make] [CHAPTER ...]     write the student notebooks
    python -m rkhs_course grade PATH ...           grade notebooks, or folders of them
    python -m rkhs_course tasks                    list the tasks
    python -m rkhs_course mark                     tag the cells of the book (authors)
"""

import argparse
import sys
from pathlib import Path

from rkhs_course.tasks import TASKS


COMMANDS = "make", "grade", "tasks", "mark"


def parser():
    found = argparse.ArgumentParser(
        prog="python -m rkhs_course", description=__doc__.splitlines()[0])
    commands = found.add_subparsers(dest="command", metavar="COMMAND")
    make = commands.add_parser("make", help="write the student notebooks")
    make.add_argument("names", nargs="*", metavar="CHAPTER")
    make.add_argument("--out", default="_build/coursework", help="where to put them")
    grade = commands.add_parser("grade", help="grade notebooks, or folders of them")
    grade.add_argument("paths", nargs="+", metavar="PATH")
    grade.add_argument("--csv", metavar="FILE", help="write the table there as CSV")
    grade.add_argument("--json", metavar="FILE", help="write the table there as JSON")
    grade.add_argument("--seed", default="", metavar="WORD",
                       help="a word of your own: it changes the data of all students")
    grade.add_argument("--seconds", type=float, default=120.0,
                       help="for a submission (%(default)g)")
    grade.add_argument("--megabytes", type=int, default=2048,
                       help="of memory (%(default)d)")
    grade.add_argument("--chapter", help="grade the tasks of this chapter, whatever "
                       "the notebook says")
    grade.add_argument("--quiet", action="store_true", help="do not print the table")
    commands.add_parser("tasks", help="list the tasks")
    mark = commands.add_parser("mark", help="tag the cells of the book (for authors)")
    for command in (make, grade, mark):
        command.add_argument("--book", help="the folder of the chapters (book)")
    return found


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0] not in {*COMMANDS, "-h", "--help"}:
        arguments = ["make", *arguments]
    options = parser().parse_args(arguments)
    book = Path(options.book or "book") if options.command != "tasks" else None
    if options.command == "tasks":
        for task in TASKS:
            print(f"{task.chapter:26} {task.name:24} {task.points}  {task.label}")
        return 0
    if options.command == "grade":
        from rkhs_course.grade import command

        return command(options, book)
    from rkhs_course.handout import HandoutError, mark, write

    try:
        if options.command == "mark":
            print("tagged:", ", ".join(mark(book)) or "nothing to do")
            return 0
        paths = write(book, options.out, options.names)
    except HandoutError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"wrote {len(paths)} notebooks into {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
