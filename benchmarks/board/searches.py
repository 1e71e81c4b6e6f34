"""Programs that run side by side, a thread waiting for each, and that end with the script which started them."""
import concurrent.futures
import signal
import subprocess
import threading


class Searches(concurrent.futures.ThreadPoolExecutor):
    """As a `with` statement: on Ctrl-C, or when another exception leaves it, none is begun any more, those that run are
    asked to end, as SIGTERM asks `tensorc tune`, and it waits for them; after Ctrl-C it ends with KeyboardInterrupt.

    Ctrl-C raises nothing before that: an exception in the middle of concurrent.futures' own code can leave a future's
    lock held, for which its thread then waits for ever."""

    def __init__(self, jobs):
        super().__init__(jobs)
        self.running, self.stopped, self.interrupted = set(), False, False
        self.lock = threading.RLock()  # the handler of a signal may find it held by the code that it interrupts

    def run(self, command, timeout=None, **named):
        """subprocess.run of text, for a thread of the pool; None where all has been stopped."""
        with self.lock:
            if self.stopped:
                return None
            child = subprocess.Popen(command, text=True, **named)
            self.running.add(child)
        try:
            said, complaint = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise
        finally:
            with self.lock:
                self.running.discard(child)
        return None if self.stopped else subprocess.CompletedProcess(command, child.returncode, said, complaint)

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.terminate()

    def interrupt(self, *_):
        self.interrupted = True
        self.stop()

    def __enter__(self):
        self.previous = signal.signal(signal.SIGINT, self.interrupt)
        return super().__enter__()

    def __exit__(self, kind, fault, trace):
        if kind is not None:
            self.stop()
        self.shutdown(wait=True, cancel_futures=self.stopped)
        signal.signal(signal.SIGINT, self.previous)
        if self.interrupted:
            raise KeyboardInterrupt
