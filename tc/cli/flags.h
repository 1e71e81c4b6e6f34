#pragma once

#include <gflags/gflags_declare.h>

/// The flags of all sub-commands. A flag means the same wherever it is accepted.
DECLARE_string(entry);
DECLARE_string(inputs);
DECLARE_string(sizes);
DECLARE_string(scalars);
DECLARE_uint64(seed);
DECLARE_string(backend);
DECLARE_string(options);
DECLARE_string(preset);
DECLARE_string(arch);
DECLARE_string(code_for);
DECLARE_string(search);
DECLARE_uint32(generations);
DECLARE_uint32(population);
DECLARE_string(devices);
DECLARE_uint32(time_limit);
DECLARE_uint32(measure_limit);
DECLARE_string(history);
DECLARE_string(shapes);
DECLARE_string(worker);
DECLARE_string(part);
DECLARE_int32(device);
DECLARE_string(output_dir);
DECLARE_bool(check);
DECLARE_uint32(repeat);
DECLARE_uint32(threads);
DECLARE_bool(check_bounds);
DECLARE_bool(strict);
DECLARE_bool(element_aligned);
DECLARE_bool(verify);
DECLARE_bool(time_passes);
DECLARE_string(stop_after);
DECLARE_string(stage);
DECLARE_string(output);
DECLARE_string(target);
DECLARE_uint64(isl_operations);
DECLARE_int64(time_limit_ms);
DECLARE_bool(in_place);
DECLARE_string(cache);
DECLARE_bool(production);
DECLARE_bool(reprove);
DECLARE_bool(nearest);
DECLARE_bool(keep_text);
DECLARE_bool(json);
DECLARE_string(entries);
DECLARE_string(targets);
DECLARE_bool(all_options);
DECLARE_int64(older_than_days);
DECLARE_int32(keep_best);
DECLARE_bool(other_compilers);
DECLARE_string(cuda_text);
DECLARE_string(kind);
DECLARE_string(name);
DECLARE_bool(library);
