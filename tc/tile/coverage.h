#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tc/tile/program.h"

namespace tc::tile {

/// What a launch has to do. Sets and relations are in isl's notation.
struct Work {
  /// What an instance of a statement touches.
  struct Access {
    std::string tensor;
    std::string relation;  ///< "{ S0[m, n, k] -> [m, k] : ... }"
    bool is_write = false;
    bool exact = true;  ///< false: data choose among these
  };
  struct Statement {
    std::string id;
    std::string domain;                 ///< "{ S0[m, n, k] : 0 <= m < 4 and ... }"
    std::vector<bool> reduced = {};     ///< indices that the element it writes does not depend on; empty: none
    bool adds = false;                  ///< to do an instance twice is wrong: it uses what its element holds
    bool guarded = false;               ///< some instances may have nothing to do
    std::vector<Access> accesses = {};  ///< but for what an update combines with; empty: not known
    std::string idle = {};              ///< instances that may be left out, as they count for nothing; "": none
  };
  struct Result {
    std::string tensor;
    std::string writes;    ///< "{ S0[m, n] -> [m, n] : ... }": what the launch writes for certain
    bool by_data = false;  ///< data choose further elements
    bool dies = false;     ///< nobody reads it after the launch: a value that stays on chip needs no store
  };
  std::vector<Statement> statements;
  std::vector<Result> results;
};

/// What is known of the work that a kernel does.
struct Coverage {
  /// A statement or a result.
  struct Item {
    std::string name;
    bool is_result = false;
    int64_t count = 0;         ///< instances or elements; 0: not counted, as they are no box
    bool complete = false;     ///< all are done or stored, but for idle ones, and no others
    bool leaves_idle = false;  ///< some idle instances are left out
    bool once = false;         ///< each by one thread in one iteration, once
    bool atomic = false;       ///< of a result: by atomic updates
  };
  int64_t holders = 0;                ///< tensors in shared memory and registers
  int64_t held = 0;                   ///< of those: what is read from them is of the element that is wanted
  std::vector<Item> items;            ///< one for each statement and each result of the work
  std::vector<std::string> faults;    ///< what is left out, done too often, or not asked for: a sentence each
  std::vector<std::string> unproved;  ///< what could not be decided
  bool holds() const { return faults.empty(); }
};

/// Proves that a kernel does its work:
///  - the instances that its specs carry out (Node::instances) are all those of each statement, but for some of its
///    idle ones, and no others. One that
///    adds to its element does so once: at most one thread has it in one iteration. Where several threads have it, each
///    has a register of its own for it.
///  - what such a spec reads and writes in global memory are the elements that its instance names.
///  - the elements that it stores of each result are those that the launch writes, each once if one instance writes it.
///    Otherwise certify() orders those who write it.
///  - what its operations read from shared memory and registers is of the elements that they want (holders.h).
/// The strategy promises the rest: that a spec computes the value of its instance, that a thread starts a sum before it
/// adds to it and stores it behind the last addition, and that parts of a sum are all added. A sentence of `unproved`
/// names what parts are added in.
/// For a kernel whose structure is right. `operations` bounds isl's work on each statement and each result.
Coverage cover(const Kernel& kernel, const Work& work, unsigned long operations = 2'000'000);

/// For people: a line for each statement and result that is complete.
std::string to_text(const Coverage& coverage, const std::string& indent = "");

}  // namespace tc::tile
