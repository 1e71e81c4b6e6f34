"""torch.compile's side of a run, compiled ahead by several processes.

max-autotune compiles some twenty kernels for each product and times them: half a minute a row, most of it on few cores.
These processes compile side by side, and one at a time has the device to time what it has compiled. What they choose
and compile lies in PyTorch's caches on disk, where the run finds it. A process that crashes or hangs costs its row only.
"""
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import rows as board
from arrays import TorchArrays
from timing import first_line

ROW_PATIENCE_S = 900  # a row takes half a minute by itself, and waits for the turns of the others


def rows_by_title(device):
    entries = board.CPU if device == "cpu" else board.GPU
    return {row.title: row for row in (entry.row() for entry in entries)}


def set_modes(torch, row):
    """What PyTorch computes in; compiled kernels are found again by it."""
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = row.peak == "tf32"


def longest_first(rows):
    """Those with most products to choose kernels for: the last to end decides how long all take."""
    several = {"llama_mlp": 3, "mlp3": 3, "gpt_mlp": 2, "lstm_like": 2, "conv_pair": 2}

    def products(row):
        return row.inputs[1].shape[0] if row.family == "chain" else several.get(row.family, 1)

    return sorted(rows, key=lambda row: (-products(row), -row.flops))


class Turns:
    """A lock among processes and threads, which its holder may take again."""

    def __init__(self, path):
        self.file, self.among_threads, self.depth = open(path, "wb"), threading.RLock(), 0

    @contextlib.contextmanager
    def taken(self):
        with self.among_threads:
            if self.depth == 0:
                fcntl.flock(self.file, fcntl.LOCK_EX)
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
                if self.depth == 0:
                    fcntl.flock(self.file, fcntl.LOCK_UN)


def time_in_turns(path):
    """Inductor's timing of choices waits for that of other processes."""
    from torch._inductor.runtime import benchmarking
    turns, kind = Turns(path), type(benchmarking.benchmarker)

    def exclusive(method):

        @functools.wraps(method)
        def waiting(*arguments, **named):
            with turns.taken():
                return method(*arguments, **named)

        return waiting

    for name in ("benchmark", "benchmark_cpu", "benchmark_gpu"):
        setattr(kind, name, exclusive(getattr(kind, name)))


def work(device, lock):
    """A process: reads titles of rows, compiles PyTorch's side of them, and answers each with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what PyTorch prints is no answer
    import torch
    import peers
    time_in_turns(lock)
    arrays, rows = TorchArrays(device), rows_by_title(device)
    for line in sys.stdin:
        row, begin, answer = rows[line.strip()], time.monotonic(), {}
        try:
            set_modes(torch, row)
            with torch.inference_mode():
                peers.compiled(row, [[arrays.make(tensor) for tensor in row.inputs]])
        except Exception as fault:  # the run meets it again, and says so
            answer["fault"] = first_line(fault)
        answer["seconds"] = round(time.monotonic() - begin, 1)
        if device == "cuda":
            torch.cuda.empty_cache()
        print(json.dumps(answer), file=answers, flush=True)


def kill(worker):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)  # with those that it started


def not_within(seconds):
    return f"not compiled within {seconds:.0f} s"


class Crew:
    """The processes, a thread for each; one that takes more than `patience` seconds for a row is ended."""

    def __init__(self, command, environment, patience):
        self.command, self.environment, self.patience = command, environment, patience
        self.titles, self.done, self.workers, self.ended = queue.SimpleQueue(), {}, [], False
        self.lock = threading.Lock()

    def start_worker(self):
        with self.lock:
            if self.ended:
                return None
            worker = subprocess.Popen(self.command,
                                      env=self.environment,
                                      stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL,
                                      text=True,
                                      start_new_session=True)
            self.workers.append(worker)
            return worker

    def serve(self):
        worker = None
        while not self.ended:
            try:
                title = self.titles.get_nowait()
            except queue.Empty:
                return
            worker = worker or self.start_worker()
            answer, fault = self.ask(worker, title) if worker else ("", "")
            if answer:
                self.done[title] = json.loads(answer)
            elif not self.ended:
                self.done[title] = {"fault": fault}
                worker = None

    def ask(self, worker, title):
        """Its answer, or "" and why there is none."""
        late = threading.Event()
        watch = threading.Timer(self.patience, lambda: (late.set(), kill(worker)))
        watch.start()
        answer = ""
        with contextlib.suppress(OSError):  # of one that has ended
            print(title, file=worker.stdin, flush=True)
            answer = worker.stdout.readline()
        watch.cancel()
        return answer, not_within(self.patience) if late.is_set() else "the process that compiled it ended"

    def end(self):
        with self.lock:
            self.ended = True
        for worker in self.workers:
            kill(worker)
            worker.wait()
            worker.stdin.close()
            worker.stdout.close()


def threads_of(jobs):
    """Compiling threads of a process: some more than cores in all, since each waits for its turn now and then."""
    return max(1, 2 * len(os.sched_getaffinity(0)) // jobs)


def prepare(rows, device, jobs, seconds=0, patience=ROW_PATIENCE_S, script=__file__):
    """Compiles rows for the run that follows: what became of each, by title, {"seconds": s} or with a "fault" too;
    rows that are not done within `patience` seconds of their own, or within `seconds` (if not 0) of all, have
    {"fault": ...} alone."""
    environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": str(threads_of(jobs))}
    with tempfile.TemporaryDirectory() as folder:
        crew = Crew([sys.executable, str(script), device, str(pathlib.Path(folder) / "turns")], environment, patience)
        for row in longest_first(rows):
            crew.titles.put(row.title)
        threads = [threading.Thread(target=crew.serve) for _ in range(min(jobs, len(rows)))]
        try:
            for thread in threads:
                thread.start()
            end = time.monotonic() + seconds
            for thread in threads:
                thread.join(max(0, end - time.monotonic()) if seconds else None)
        finally:
            crew.end()
        for thread in threads:
            thread.join()
    return {row.title: crew.done.get(row.title, {"fault": not_within(seconds)}) for row in rows}


if __name__ == "__main__":
    work(*sys.argv[1:])
