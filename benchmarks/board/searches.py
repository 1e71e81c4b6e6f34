"""Programs that run side by side, a thread waiting for each, and that end with the script which started them."""
import concurrent.futures
import subprocess
import threading


class Searches(concurrent.futures.ThreadPoolExecutor):
    """As a `with` statement: when Ctrl-C or another exception leaves it, none is begun any more, those that run are asked
    to end, as SIGTERM asks `tensorc tune`, and it waits for them."""

    def __init__(self, jobs):
        super().__init__(jobs)
        self.running, self.stopped, self.lock = set(), False, threading.Lock()

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

    def __exit__(self, kind, fault, trace):
        if kind is not None:
            with self.lock:
                self.stopped = True
                for child in self.running:
                    child.terminate()
            self.shutdown(wait=True, cancel_futures=True)
        return super().__exit__(kind, fault, trace)
