"""A command for programs that start another by its command line: becomes a fork (see forks.py).

`python -IS fork_command.py SOCKET MODULE ARGUMENT ...` hands its standard files, folder and
environment to the fork, passes signals on to it, and exits as it does; killed, it takes the fork
with it. It loads next to nothing.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    path, module, *arguments = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(path)
        asked = [module, arguments, os.getcwd(), dict(os.environ), "tied"]
        socket.send_fds(asking, [json.dumps(asked).encode()], [0, 1, 2])
        pid = int(asking.recv(100))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: os.kill(pid, number))
        for file in (0, 1):  # else nobody would see that the fork has closed them
            os.close(file)
        code = os.waitstatus_to_exitcode(int(asking.recv(100)))
    if code < 0:
        if -code != signal.SIGKILL:  # which always has its own way
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
