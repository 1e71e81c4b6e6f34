"""Which options our kernels of a row are compiled with."""


class Options:
    """`names` are those of --options; `given` is a text of options that makes one more kernel."""

    def __init__(self, names, cache, given, library):
        unknown = [name for name in names if name not in ("default",)]
        if unknown:
            raise SystemExit(f"run.py: --options={unknown[0]}: there is only default")
        self.given = given

    def of(self, row):
        return {"ours": "", "given": self.given or None}
