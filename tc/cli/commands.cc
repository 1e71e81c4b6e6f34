#include "tc/cli/commands.h"

#include "tc/cli/command_line.h"

namespace tc::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"check",
       "check FILE.tc",
       "Checks a program, and prints each def's shapes, index ranges and preconditions.",
       "Checks a program without compiling it. For each def, prints its signature with inferred shapes, the range of "
       "every index, and what a call must fulfil.",
       {},
       {"tensorc check matmul.tc"},
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
       {"entry",        "inputs",  "sizes",          "scalars",       "seed",   "backend",     "device",
        "arch",         "options", "preset",         "output_dir",    "check",  "repeat",      "threads",
        "check_bounds", "strict",  "isl_operations", "time_limit_ms", "verify", "time_passes", "stop_after"},
       {"tensorc run matmul.tc --sizes=M=128,N=64,K=32 --check --output_dir=",
        "tensorc run matmul.tc --inputs=A=a.npy,B=b.npy --output_dir=results",
        "tensorc run sgemm.tc --inputs=A=a.npy,B=b.npy,C=c.npy --scalars=a=2.5,b=0 --repeat=100",
        "tensorc run matmul.tc --sizes=M=128,N=64,K=32 --backend=sim --preset=naive --check --output_dir="},
       1,
       run_run},
      {"emit",
       "emit FILE.tc --stage=STAGE [flags]",
       "Prints what a stage of the compiler makes of a def.",
       "Compiles a def as far as a stage or a pass, and prints what that made. From the schedule on, all sizes and the "
       "scalars that are compiled in must have values.",
       {"stage", "entry", "sizes", "scalars", "backend", "arch", "options", "preset", "output", "target", "threads",
        "check_bounds", "strict", "isl_operations", "time_limit_ms", "verify", "time_passes", "stop_after"},
       {"tensorc emit matmul.tc --stage=program", "tensorc emit matmul.tc --stage=stmt --sizes=M=128,N=64,K=32",
        "tensorc emit matmul.tc --stage=cuda --arch=sm_90a --sizes=M=128,N=64,K=32",
        "tensorc emit matmul.tc --stop_after=scop --sizes=M=128,N=64,K=32 --time_passes"},
       1,
       run_emit},
  };
  return kCommands;
}

}  // namespace tc::cli
