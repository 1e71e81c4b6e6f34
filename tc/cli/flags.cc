#include "tc/cli/flags.h"

#include <gflags/gflags.h>

#include "tc/options/options.h"

DEFINE_string(entry, "", "The def to compile. Needed only if the file has several.");
DEFINE_string(inputs, "",
              "NAME=FILE.npy,... Tensors to read: inputs, in-out tensors, or the first contents of results. Inputs and "
              "in-outs that are not given are filled with random elements.");
DEFINE_string(sizes, "", "NAME=NUMBER,... Symbolic sizes that no tensor of --inputs determines.");
DEFINE_string(scalars, "", "NAME=NUMBER,... Values of scalar parameters.");
DEFINE_string(types, "",
              "VARIABLE=TYPE,... Types of a generic def's variables that no tensor of --inputs decides. DEF.VARIABLE "
              "is that of one "
              "def. '--entry' takes the name of an instance too: --entry='softmax<float16>'.");
DEFINE_uint64(seed, 0,
              "Seed of random tensors. Floats are uniform in [-1, 1). Integers are in [-8, 8), or [0, 16) if unsigned; "
              "subscripts are within bounds. A bool is true half of the time. The same seed gives a tensor of the same "
              "name and shape the same elements, on any machine.");
DEFINE_string(backend, "cpu",
              "cpu: compile and run. cuda: the same on an NVIDIA GPU. sim: simulate the GPU's kernels on the CPU; this "
              "finds races and accesses out of bounds. interp: interpret, slowly and in float64. auto: cuda if there "
              "is a GPU, else cpu.");
DEFINE_string(options, "",
              "FILE with options, in the protobuf text form of tc.proto.CpuOptions or, for a GPU, "
              "tc.proto.MappingOptions. See options.proto: in share/tensorc of an installation, in proto of the "
              "sources. The compiler chooses absent options.");
DEFINE_string(preset, "", "Options for a GPU by name: naive, single_thread, pointwise, mlp, conv or group_conv.");
DEFINE_string(arch, "sm_90a",
              "NVIDIA architecture to compile for. A kernel that runs on a GPU is compiled for that GPU instead.");
DEFINE_string(code_for, "",
              "ARCH,... Compile the exported kernels for these architectures too, by NVRTC. The cache must have their "
              "CUDA text: 'tune' and 'run --keep_text' keep it.");
DEFINE_string(search, "genetic", "How to search: genetic or random.");
DEFINE_uint32(generations, 10, "Generations of candidates.");
DEFINE_uint32(population, 16, "Candidates in a generation.");
DEFINE_string(devices, "", "NUMBER,... GPUs to measure on, each once. Empty: the one of --device.");
DEFINE_uint32(time_limit, 0, "Seconds until the search ends with the best so far. 0: no limit.");
DEFINE_uint32(
    measure_limit, 60,
    "Seconds for measuring one candidate. The first one has ten times as long, because it waits for the interpreter.");
DEFINE_string(history, "",
              "FILE to write the outcome of each candidate to, as CSV. Processes side by side need one file each.");
DEFINE_string(shapes, "",
              "FILE with one problem a line: ENTRY SIZES [SCALARS], written as in the flags of these names; '-' for no "
              "sizes. They are tuned one after the other. A # starts a comment.");
DEFINE_string(worker, "",
              "Command that starts a worker, such as 'ssh node2 tensorc worker'. It is split at spaces; quotes are not "
              "interpreted. Empty: this tool, on this machine.");
DEFINE_string(part, "",
              "I/N: this process is number I, from 0, of N side by side. They share the lines of --shapes; one problem "
              "is searched from different seeds. Empty: as Open MPI or a Slurm array says, else 0/1.");
DEFINE_int32(device, 0, "Number of the GPU to run on, for the backends cuda and auto.");
DEFINE_string(output_dir, ".", "Folder to write each result to, as NAME.npy. Empty: results are not written.");
DEFINE_bool(check, false,
            "Compare the results with the interpreter's, and fail if the difference is larger than rounding explains.");
DEFINE_uint32(repeat, 1, "How often to run for the time. The results are those of the first run.");
DEFINE_uint32(threads, 0, "Threads that a kernel may use. 0: all cores of this process.");
DEFINE_bool(check_bounds, false, "Check subscripts that data choose, at every run.");
DEFINE_bool(strict, false, "No extra precision and a fixed order of reductions: the same bits on every run.");
DEFINE_bool(tf32, false, "Tensor cores may take float32 operands of products as TF32, with 10 bits of fraction.");
DEFINE_bool(fast_accumulation, false,
            "Sums of products of 8-bit floats stay in the tensor cores' own precision, instead of float32.");
DEFINE_bool(element_aligned, false,
            "Compile a GPU's kernel for tensors at any address. Without this flag a kernel may copy vectors of up to "
            "16 bytes, and unaligned tensors get a second kernel later.");
DEFINE_bool(verify, false, "Run the verifier after every pass.");
DEFINE_bool(time_passes, false, "Print to standard error how long each pass took, in milliseconds.");
DEFINE_string(stop_after, "",
              "Stop after this pass and print its result: parse, analyse, program, specialise, prepare, scop, "
              "schedule; then stmt, object or load on the CPU; map, tile, cuda, cubin or load for a GPU.");
DEFINE_string(stage, "",
              "What to print. ast: the typed tree. program: ranges and shapes. schedule: the schedule tree. stmt: the "
              "loops. object: the machine code, as assembly. For a GPU, map: what was decided about each "
              "kernel. tile: the kernels as tile programs. cuda: CUDA text. ptx, cubin: the output of NVRTC.");
DEFINE_string(format, "",
              "text, json or html: one page that needs nothing beside it. Default: as the name of --output ends, else "
              "text.");
DEFINE_string(output, "", "FILE to write to instead of standard output.");
DEFINE_string(target, "host",
              "Processor to compile for, in Halide's notation: x86-64-linux-avx2-fma-f16c-sse41. host: this one.");
DEFINE_uint64(isl_operations, tc::options::Budget{}.isl_operations,
              "Limit on the work of the polyhedral library in one compilation.");
DEFINE_int64(time_limit_ms, tc::options::Budget{}.wall_clock_ms, "Milliseconds that one compilation may take.");
DEFINE_bool(in_place, false, "Write the canonical form to the file itself. Also -i.");

DEFINE_string(cache, "",
              "FILE of a compilation cache. A kernel that it has is not compiled; others are added. Without --options "
              "the fastest known options for the shape and device are used.");
DEFINE_bool(production, false, "Only read the cache. A kernel that it lacks is an error.");
DEFINE_bool(reprove, false,
            "Prove the schedules of cached kernels again. Without this flag only kernels of other compiler versions "
            "are proved again, when they are used.");
DEFINE_bool(nearest, false,
            "If the cache knows no options for a shape, use those of the nearest shape, and prove them.");
DEFINE_bool(keep_text, false, "Keep the CUDA text in the cache too.");
DEFINE_bool(json, false, "Print JSON instead of text.");
DEFINE_string(entries, "", "NAME,... Only these defs.");
DEFINE_string(targets, "",
              "TARGET,... Only these processors and architectures: sm_90a, or a CPU's name as 'cache list' prints it.");
DEFINE_bool(all_options, false, "Export all options, not only the best of each shape.");
DEFINE_int64(older_than_days, 0, "Remove entries and measurements that are older than this many days. 0: none.");
DEFINE_int32(keep_best, 0, "Keep only this many of the fastest options of each shape and device. 0: all.");
DEFINE_bool(other_compilers, false, "Remove the entries of other compiler versions.");
DEFINE_string(
    cuda_text, "",
    "FILE with CUDA text of your own. It needs the kernel names and parameters that 'emit --stage=cuda' prints. It has "
    "the same launches, unless a line '// launch NAME grid X Y Z block X Y Z cluster X Y Z shared BYTES' says "
    "otherwise.");
DEFINE_string(kind, "c", "What to make. c: a C header, a C file and a static library.");
DEFINE_string(name, "", "Name of the C function and of the files. Default: tc_ and the def's name.");
DEFINE_bool(library, true,
            "Make the static library too, with the C compiler in $CC, or cc. --library=false: only the text of C.");
