#include "tc/cli/flags.h"

#include <gflags/gflags.h>

#include "tc/options/options.h"

DEFINE_string(entry, "", "The def to compile. Needed only if the file has several.");
DEFINE_string(inputs, "",
              "NAME=FILE.npy,... Tensors to read: inputs, in-out tensors, or the first contents of results. Inputs and "
              "in-outs that are not given are filled with random elements.");
DEFINE_string(sizes, "", "NAME=NUMBER,... Symbolic sizes that no tensor of --inputs determines.");
DEFINE_string(scalars, "", "NAME=NUMBER,... Values of scalar parameters.");
DEFINE_string(
    types, "",
    "VARIABLE=TYPE,... Types of a generic def's variables that no tensor of --inputs decides. '--entry' takes "
    "the name of an instance too: --entry='softmax<float16>'.");
DEFINE_uint64(seed, 0,
              "Seed of random tensors. Floats are uniform in [-1, 1); integers in [-8, 8), or [0, 16) if unsigned, or "
              "within bounds where they are used as subscripts; a bool is true half of the time. The same seed gives "
              "a tensor of the same name and shape the same elements, on any machine.");
DEFINE_string(
    backend, "cpu",
    "cpu: compile and run. cuda: the same on a GPU of NVIDIA's. sim: the GPU's kernels, simulated on the CPU, "
    "which finds races and accesses out of bounds. interp: interpret, slowly and in float64. auto: cuda where "
    "there is a GPU, else cpu.");
DEFINE_string(options, "",
              "FILE with options of the compilation: the protobuf text form of tc.proto.CpuOptions or, for a GPU, of "
              "tc.proto.MappingOptions, see options.proto (share/tensorc of an installation, proto of the sources). "
              "Absent options are chosen by the compiler.");
DEFINE_string(preset, "",
              "Mapping options by name: naive, single_thread, pointwise, mlp, conv or group_conv. For a GPU.");
DEFINE_string(arch, "sm_90a", "Architecture of NVIDIA's to compile for, where it is not that of a GPU at hand.");
DEFINE_string(code_for, "",
              "ARCH,... Architectures for which the exported kernels get code by NVRTC, where they have none. Their "
              "CUDA text must be in the cache: 'tune' and 'run --keep_text' keep it.");
DEFINE_string(search, "genetic", "How to search: genetic or random.");
DEFINE_uint32(generations, 10, "Generations of candidates.");
DEFINE_uint32(population, 16, "Candidates in a generation.");
DEFINE_string(devices, "", "NUMBER,... GPUs to measure on, each once. Empty: that of --device.");
DEFINE_uint32(time_limit, 0, "Seconds until the search ends with the best so far. 0: no limit.");
DEFINE_uint32(measure_limit, 60,
              "Seconds that measuring one candidate may take; the first, which waits for the oracle, ten times that.");
DEFINE_string(
    history, "",
    "FILE to write what became of each candidate to, as CSV. Each of processes side by side needs one of its own.");
DEFINE_string(shapes, "",
              "FILE with a problem a line, which are tuned one after the other: ENTRY SIZES [SCALARS], as the flags of "
              "these names have them, '-' for no sizes. What follows a # is a remark.");
DEFINE_string(
    worker, "",
    "Command that starts a worker, with its arguments, which blanks separate (quotes are no more than signs): ssh, "
    "mpirun or srun and then tensorc worker on another machine, say. Empty: this tool, on this machine.");
DEFINE_string(part, "",
              "I/N: this process is the I-th, from 0, of N side by side. They share out the lines of --shapes; one "
              "problem they search from different seeds. Empty: as Open MPI or a Slurm array say, else 0/1.");
DEFINE_int32(device, 0, "Number of the GPU to run on. For the backend cuda; auto heeds it where it takes a GPU.");
DEFINE_string(output_dir, ".", "Folder to write each result to, as NAME.npy. Empty: results are not written.");
DEFINE_bool(check, false,
            "Compare the results with the interpreter's, and fail if one is farther off than rounding explains.");
DEFINE_uint32(repeat, 1, "How often to run for the time. The results are those of the first run.");
DEFINE_uint32(threads, 0, "Threads that a kernel may use. 0: all cores of this process.");
DEFINE_bool(check_bounds, false, "Check data-dependent subscripts when the kernel runs.");
DEFINE_bool(strict, false, "No extra precision and a fixed order of reductions: the same bits on every run.");
DEFINE_bool(
    element_aligned, false,
    "A GPU's kernel for tensors of any address that their elements can have. Without it one may copy by vectors "
    "of up to 16 bytes, and leaves other tensors to a second kernel, which this flag compiles ahead.");
DEFINE_bool(verify, false, "Run the verifier after every pass.");
DEFINE_bool(time_passes, false, "Print to standard error how long each pass took, in milliseconds.");
DEFINE_string(
    stop_after, "",
    "Stop after this pass and print what it made: parse, analyse, program, specialise, prepare, scop, then schedule, "
    "stmt, object or load on the CPU; tile, cuda, cubin or load for a GPU.");
DEFINE_string(
    stage, "",
    "What to print. ast: the typed tree. program: ranges and shapes, for the sizes given if any are. "
    "schedule: the schedule tree. stmt: the loops. object: the machine code, as assembly. For a GPU, tile: the "
    "kernels as tile programs. cuda: as CUDA text. ptx, cubin: as NVIDIA's compiler translates it.");
DEFINE_string(output, "", "FILE to write to instead of standard output.");
DEFINE_string(target, "host",
              "Processor to compile for, as Halide writes it: x86-64-linux-avx2-fma-f16c-sse41. host: this one.");
DEFINE_uint64(isl_operations, tc::options::Budget{}.isl_operations,
              "Bound on the work of the polyhedral library in one compilation.");
DEFINE_int64(time_limit_ms, tc::options::Budget{}.wall_clock_ms, "Bound on the time of one compilation.");
DEFINE_bool(in_place, false, "Write the canonical form to the file itself. Also -i.");

DEFINE_string(
    cache, "",
    "FILE of a compilation cache: a kernel that it has is not compiled, one that it has not is added. Options "
    "that are left to the compiler mean the fastest that it knows for the shape and the device.");
DEFINE_bool(production, false, "Only read the cache: a kernel that it has not is an error.");
DEFINE_bool(reprove, false,
            "Prove the legality of cached schedules again. Without this flag only those of other versions of the "
            "compiler are proved again, when they are used.");
DEFINE_bool(nearest, false,
            "Where the cache knows no options for a shape, take those of the nearest one, and prove them.");
DEFINE_bool(keep_text, false, "Keep the CUDA text in the cache too.");
DEFINE_bool(json, false, "Print JSON in place of a table.");
DEFINE_string(entries, "", "NAME,... Only these defs.");
DEFINE_string(targets, "",
              "TARGET,... Only these processors and architectures: sm_90a, or a CPU as 'cache list' names it.");
DEFINE_bool(all_options, false, "Not only the best options of each shape.");
DEFINE_int64(older_than_days, 0, "Remove entries and measurements from more than so many days ago. 0: none.");
DEFINE_int32(keep_best, 0, "Of each shape and device keep the so many fastest options only. 0: all.");
DEFINE_bool(other_compilers, false, "Remove the entries of other versions of the compiler.");
DEFINE_string(
    cuda_text, "",
    "FILE with CUDA text written by hand. Its kernels have the names and parameters of what 'emit "
    "--stage=cuda' prints, and its launches, unless a line '// launch NAME grid X Y Z block X Y Z shared BYTES' "
    "says otherwise.");
DEFINE_string(kind, "c", "What to make. c: a C header, a C file and a static library.");
DEFINE_string(name, "", "Name of the function of C, and of the files. Default: tc_ and the def's name.");
DEFINE_bool(library, true, "Make the static library too, with the C compiler that $CC names, or cc.");
