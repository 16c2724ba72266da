"""A program that does not await: the app's methods block, and any thread may call them."""

from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock


def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job
    def count(ctx: JobContext, text: str) -> int:
        return len(text.split())

    with app.sync() as q:
        with q.running():  # workers in this process; `penstock worker` in another does as well
            job = q.enqueue("count", {"text": "to be or not to be"}, priority="high")
            done = q.wait(job.id, timeout=30)
            print(done.state, done.result)
            assert done.result == 6

            ref = q.run(count.enqueue(text="one two"))  # what is awaited elsewhere
            assert q.run(ref.result(timeout=30)) == 2

            with ThreadPoolExecutor(4) as threads:  # as in a web server
                jobs = list(threads.map(lambda n: q.enqueue("count", {"text": "a " * n}), range(8)))
            assert [q.result(job.id, timeout=30) for job in jobs] == list(range(8))
        assert q.dead_letters() == []


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
