#include "tc/cli/commands.h"

#include <map>
#include <utility>

#include "tc/cli/command_line.h"

namespace tc::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"check",
       "check FILE.tc [flags]",
       "Checks a program, and prints each def's shapes, index ranges and preconditions.",
       "Checks a program without compiling it. For each def, prints its signature with inferred shapes, the range of "
       "every index with the read, clause or declaration that sets it, and what a call must fulfil. --scalars gives "
       "values to compiled-in scalars, --sizes makes ranges and shapes numbers. For a generic def, one instance is "
       "shown, and the errors of the others are listed; --types chooses the instance. With --json, standard output has "
       "one JSON object with all errors, notes, types and ranges and their places in the text (docs/editors.md). "
       "Standard error and the exit code do not change.",
       {"sizes", "scalars", "types", "json", "time_limit_ms"},
       {"tensorc check matmul.tc", "tensorc check conv.tc --scalars=stride=2 --sizes=H=9,K=3 --json"},
       1,
       run_check},
      {"fmt",
       "fmt FILE.tc [flags]",
       "Prints a program in canonical form.",
       "Prints a program in canonical form: one statement a line, types by their full names, the fewest parentheses. "
       "Comments are kept.",
       {"in_place", "check"},
       {"tensorc fmt matmul.tc", "tensorc fmt -i matmul.tc", "tensorc fmt --check matmul.tc"},
       1,
       run_fmt},
      {"run",
       "run FILE.tc [flags]",
       "Compiles a def, runs it on .npy files or random data, and writes the results.",
       "Compiles a def and runs it. Prints a line for each result (name, type, shape, least and largest element, mean) "
       "and the time, and writes each result to a .npy file. Nothing is written if anything fails.",
       {"entry",
        "inputs",
        "sizes",
        "scalars",
        "types",
        "seed",
        "backend",
        "device",
        "arch",
        "options",
        "preset",
        "output_dir",
        "check",
        "repeat",
        "threads",
        "check_bounds",
        "strict",
        "tf32",
        "fast_accumulation",
        "element_aligned",
        "isl_operations",
        "time_limit_ms",
        "verify",
        "time_passes",
        "stop_after",
        "cache",
        "production",
        "reprove",
        "nearest",
        "keep_text"},
       {"tensorc run matmul.tc --sizes=M=128,N=64,K=32 --check --output_dir=",
        "tensorc run matmul.tc --inputs=A=a.npy,B=b.npy --output_dir=results",
        "tensorc run sgemm.tc --inputs=A=a.npy,B=b.npy,C=c.npy --scalars=a=2.5,b=0 --repeat=100",
        "tensorc run matmul.tc --sizes=M=128,N=64,K=32 --backend=sim --preset=naive --check --output_dir="},
       1,
       run_run},
      {"tune",
       "tune FILE.tc [flags]",
       "Searches for the fastest options of a def.",
       "Searches for the fastest options of a def, for its sizes, on this machine's processor or GPU. Worker processes "
       "compile and measure each candidate and compare it with the interpreter: a candidate that crashes, hangs or is "
       "wrong costs only itself. Prints the best options, ready for --options. Ctrl-C ends the search with the best so "
       "far. With --cache, all measurements are kept: an interrupted search continues, and 'run' with the same cache "
       "uses the best.",
       {"entry",           "sizes",        "scalars",     "types",         "shapes", "inputs",     "cache",
        "search",          "threads",      "generations", "population",    "seed",   "time_limit", "backend",
        "device",          "devices",      "options",     "preset",        "strict", "tf32",       "fast_accumulation",
        "element_aligned", "check_bounds", "history",     "measure_limit", "worker", "part",       "isl_operations",
        "time_limit_ms"},
       {"tensorc tune matmul.tc --sizes=M=512,N=512,K=512 --cache=kernels.tcc",
        "tensorc tune model.tc --shapes=model.shapes --cache=kernels.tcc --backend=cuda --devices=0,1 --history=h.csv",
        "tensorc tune matmul.tc --sizes=M=512,N=512,K=512 --worker='ssh node2 tensorc worker'",
        "mpirun -n 3 tensorc tune matmul.tc --sizes=M=512,N=512,K=512 --cache=kernels.tcc"},
       1,
       run_tune},
      {"worker",
       "worker",
       "Compiles and measures for a tuner, over standard input and output.",
       "Compiles and measures candidates for 'tensorc tune', which sends them over standard input (proto/tune.proto). "
       "Not for use by hand: 'tensorc tune --worker' starts workers.",
       {},
       {"tensorc tune matmul.tc --sizes=M=512,N=512,K=512 --worker='mpirun -n 1 --host node2 tensorc worker'"},
       0,
       run_worker},
      {"emit",
       "emit FILE.tc --stage=STAGE [flags]",
       "Prints the result of a stage of the compiler.",
       "Compiles a def as far as a stage or a pass, and prints the result. From the schedule on, all sizes and "
       "compiled-in scalars need values. The stage 'certificate' counts, for each GPU kernel, what the verifiers "
       "prove, and gives a reason for all that they do not prove.",
       {"stage",           "entry",          "sizes",         "scalars",
        "types",           "backend",        "arch",          "options",
        "preset",          "output",         "target",        "threads",
        "check_bounds",    "strict",         "tf32",          "fast_accumulation",
        "element_aligned", "isl_operations", "time_limit_ms", "verify",
        "time_passes",     "stop_after"},
       {"tensorc emit matmul.tc --stage=program", "tensorc emit matmul.tc --stage=stmt --sizes=M=128,N=64,K=32",
        "tensorc emit matmul.tc --stage=cuda --arch=sm_90a --sizes=M=128,N=64,K=32",
        "tensorc emit matmul.tc --stage=certificate --sizes=M=128,N=64,K=32",
        "tensorc emit matmul.tc --stop_after=scop --sizes=M=128,N=64,K=32 --time_passes"},
       1,
       run_emit},
      {"explain",
       "explain FILE.tc [flags]",
       "Shows what the compiler makes of a def, and why.",
       "Shows what the compiler makes of a def, without running it and without a GPU: what sets the range of each "
       "index; which statements run in which kernel, where values wait between them, and why kernels are apart; the "
       "strategy, options and tiles of each kernel; its floor (operations and bytes at the machine's rates), its "
       "estimate, and what limits it. JSON and HTML have the schedule tree, the generated code and measurements too "
       "(docs/explain.md).",
       {"format",          "output",         "entry",         "sizes",  "scalars", "types",
        "backend",         "arch",           "options",       "preset", "cache",   "history",
        "target",          "threads",        "check_bounds",  "strict", "tf32",    "fast_accumulation",
        "element_aligned", "isl_operations", "time_limit_ms", "verify"},
       {"tensorc explain matmul.tc --sizes=M=128,N=64,K=32",
        "tensorc explain matmul.tc --sizes=M=128,N=64,K=32 --backend=cuda --arch=sm_90a -o matmul.html"},
       1,
       run_explain},
      {"export",
       "export FILE.tc --kind=c [flags]",
       "Compiles a def to a C function with its header and a static library.",
       "Compiles a def for constant sizes to a C function: NAME.h, NAME.c and libNAME.a. For the CPU the library has "
       "the machine code and needs only the C library; loops use several cores if NAME.c is compiled with OpenMP. For "
       "a GPU the C file has the cubin, and the library needs only the driver (libcuda). With --cache, the best known "
       "kernel for the sizes is exported; that needs neither a GPU nor NVRTC.",
       {"kind",
        "name",
        "library",
        "output_dir",
        "entry",
        "sizes",
        "scalars",
        "types",
        "backend",
        "arch",
        "target",
        "threads",
        "options",
        "preset",
        "check_bounds",
        "strict",
        "tf32",
        "fast_accumulation",
        "element_aligned",
        "cache",
        "production",
        "isl_operations",
        "time_limit_ms",
        "verify"},
       {"tensorc export matmul.tc --kind=c --sizes=M=128,N=64,K=32 --output_dir=out",
        "tensorc export matmul.tc --kind=c --backend=cuda --arch=sm_90a,sm_80 --sizes=M=128,N=64,K=32 "
        "--name=matmul_128"},
       1,
       run_export},
      {"cache list",
       "cache list FILE [flags]",
       "Lists the kernels of a compilation cache.",
       "Lists the kernels of a compilation cache: a line for each with its id, def, sizes, target, options, bytes, the "
       "shortest time measured, and the compiler that made it.",
       {"json"},
       {"tensorc cache list kernels.tcc"},
       1,
       run_cache_list},
      {"cache show",
       "cache show FILE ID [flags]",
       "Shows everything that a cache has about one kernel.",
       "Shows everything that a cache has about one kernel: its key, options, launches, certificate and measurements. "
       "ID is the "
       "beginning of an id that 'cache list' prints. --stage=cuda|cubin|object prints that part of it instead, if the "
       "cache has it.",
       {"json", "stage", "output"},
       {"tensorc cache show kernels.tcc 5f0c", "tensorc cache show kernels.tcc 5f0c --stage=cubin -o kernel.cubin"},
       2,
       run_cache_show},
      {"cache best",
       "cache best FILE [flags]",
       "Prints the best known options of each shape.",
       "Prints the fastest options that were measured for each def, shape and device.",
       {"json", "entries"},
       {"tensorc cache best kernels.tcc --entries=mlp1"},
       1,
       run_cache_best},
      {"cache merge",
       "cache merge FILE FROM... [flags]",
       "Adds the rows of other caches to a cache.",
       "Adds the rows of other caches to a cache. Of two measurements of the same options for the same shape and "
       "device the "
       "faster one stays. A damaged row is replaced.",
       {"json"},
       {"tensorc cache merge all.tcc worker1.tcc worker2.tcc"},
       2,
       run_cache_merge,
       true},
      {"cache verify",
       "cache verify FILE [flags]",
       "Checks every row of a cache for damage.",
       "Reads every row of a cache, checks its checksum, and checks the file's structure. --reprove also proves again "
       "that each kernel's schedule is legal. The exit code is 1 if anything is wrong.",
       {"reprove", "json"},
       {"tensorc cache verify kernels.tcc", "tensorc cache verify kernels.tcc --reprove"},
       1,
       run_cache_verify},
      {"cache prune",
       "cache prune FILE [flags]",
       "Removes damaged, old or slow rows from a cache.",
       "Removes damaged rows and those that the flags choose, and shrinks the file.",
       {"older_than_days", "keep_best", "other_compilers", "json"},
       {"tensorc cache prune kernels.tcc --keep_best=1", "tensorc cache prune kernels.tcc --older_than_days=90"},
       1,
       run_cache_prune},
      {"cache import",
       "cache import FILE PROGRAM.tc [flags]",
       "Adds a kernel by hand to a cache: options, or CUDA text.",
       "Adds a kernel by hand to a cache, for the sizes given: one compiled with --options or, for a GPU, CUDA text of "
       "your own (--cuda_text). It is run on random data and compared with the interpreter's results (for large "
       "shapes, with those of the CPU's strict kernel). A wrong one is refused. Then it is timed, so that it is used "
       "if it is the fastest known.",
       {"entry",           "sizes",          "scalars",       "types",  "seed",
        "backend",         "device",         "options",       "preset", "cuda_text",
        "threads",         "check_bounds",   "strict",        "tf32",   "fast_accumulation",
        "element_aligned", "isl_operations", "time_limit_ms", "repeat", "json"},
       {"tensorc cache import kernels.tcc matmul.tc --sizes=M=128,N=64,K=32 --options=mine.txt",
        "tensorc cache import kernels.tcc matmul.tc --sizes=M=128,N=64,K=32 --backend=cuda --cuda_text=mine.cu"},
       2,
       run_cache_import},
      {"cache export",
       "cache export FILE OUT [flags]",
       "Writes a part of a cache to a new, read-only file for production.",
       "Writes a part of a cache to a new, read-only file: for the chosen defs and targets, the best known options of "
       "each shape and the compiler's own choice. 'tensorc run --production' and Engine::production() open it.",
       {"entries", "targets", "all_options", "code_for", "json"},
       {"tensorc cache export kernels.tcc production.tcc --entries=mlp1 --targets=sm_90a",
        "tensorc cache export kernels.tcc production.tcc --targets=sm_90a --code_for=sm_80,sm_86"},
       2,
       run_cache_export},
  };
  return kCommands;
}

std::string text_of_flag(const std::string& command, const std::string& flag) {
  constexpr const char* kSizes = "NAME=NUMBER,... Values of symbolic sizes.";
  constexpr const char* kTypes =
      "VARIABLE=TYPE,... Types of a generic def's variables; DEF.VARIABLE is that of one def. '--entry' takes the name "
      "of "
      "an instance too: --entry='softmax<float16>'.";
  static const std::map<std::pair<std::string, std::string>, std::string> kTexts = {
      {{"check", "sizes"}, kSizes},
      {{"check", "types"},
       "VARIABLE=TYPE,... Types of generic defs' variables: of all defs that have the variable, or of one by "
       "DEF.VARIABLE. Defs without types are checked for all."},
      {{"check", "time_limit_ms"}, "Milliseconds until the check ends with an error."},
      {{"fmt", "check"}, "Print nothing, and fail if the file is not in canonical form."},
      {{"tune", "threads"}, "How many candidates are compiled at once. 0: one for each core of this process."},
      {{"tune", "seed"},
       "Seed of the search and of random tensors. The same seed and the same measurements give the same candidates."},
      {{"tune", "backend"},
       "What to search for: cpu, cuda, or sim, whose times are those of a model. auto: cuda if there is a GPU, else "
       "cpu."},
      {{"emit", "sizes"}, kSizes},
      {{"emit", "types"}, kTypes},
      {{"emit", "backend"},
       "What to compile for: cpu, cuda or sim. auto: cuda if there is a GPU, else cpu. A stage that only one "
       "backend has needs no --backend."},
      {{"emit", "arch"}, "NVIDIA architecture to compile for."},
      {{"explain", "sizes"}, kSizes},
      {{"explain", "types"}, kTypes},
      {{"explain", "backend"}, "What to compile for: cpu, cuda or sim. auto: cuda if there is a GPU, else cpu."},
      {{"explain", "arch"}, "NVIDIA architecture to compile for."},
      {{"explain", "cache"},
       "FILE of a compilation cache, which is only read: whether it has the kernel, under which options, and what was "
       "measured of the def for these sizes. Without --options, the best known ones are explained."},
      {{"explain", "history"},
       "FILE with the history of a search for the same sizes, as CSV: the outcome of each candidate is shown."},
      {{"export", "sizes"}, kSizes},
      {{"export", "types"}, kTypes},
      {{"export", "backend"}, "What to compile for: cpu or cuda. auto: cuda if there is a GPU, else cpu."},
      {{"export", "output_dir"}, "Folder to write the files to."},
      {{"export", "arch"},
       "ARCH,... NVIDIA architectures to compile for. The first one decides "
       "how loops are mapped, and the text is compiled for each."},
      {{"export", "cache"},
       "FILE of a compilation cache, which is only read. A kernel that it has is not compiled. Without --options the "
       "fastest known options for the shape and device are used."},
      {{"cache show", "stage"},
       "The part to print instead. cuda: the CUDA text. cubin: a GPU's machine code. object: a CPU's."},
      {{"cache import", "sizes"}, kSizes},
      {{"cache import", "types"}, kTypes},
      {{"cache import", "backend"}, "What to compile for: cpu or cuda. auto: cuda if there is a GPU, else cpu."},
      {{"cache import", "repeat"}, "How often to run for the time; at least 21 times."},
      {{"cache verify", "reprove"}, "Also prove again that each kernel's schedule is legal."},
  };
  const auto found = kTexts.find({command, flag});
  return found == kTexts.end() ? "" : found->second;
}

}  // namespace tc::cli
