// Collectives over teams and active sets (OpenSHMEM 1.5, section 9.9, and those that it has
// deprecated). See operations.h. The engine of MPI's collectives does all that it can; where PEs
// write into each other's memory in a pattern of OpenSHMEM's own, they meet before and after.
#include <cstring>
#include <string>
#include <vector>

#include "shm/word_copy.h"
#include "shmem/base/assembly.h"
#include "shmem/base/copies.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/operations.h"
#include "shmem/coll/active_sets.h"
#include "shmem/coll/reduction.h"
#include "shmem/rma/call_comparison.h"
#include "shmem/rma/checks.h"
#include "shmem/rma/reach.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {
namespace {

using collective::Collective;
using collective::Problem;

Assembly& AssemblyOf(const char* call, const Group& group) {
  return group.pe_count == 0 ? *CheckTeam(call, group.team).assembly
                             : ActiveSet(call, group.pe_start, group.pe_stride, group.pe_count);
}

// A member's place for an address of ours.
std::byte* At(const Assembly& assembly, int member, const void* address, size_t bytes) {
  const Segment* const segment = job.FindSegment(address, bytes);
  return const_cast<std::byte*>(static_cast<const std::byte*>(address)) +
         segment->shifts[static_cast<size_t>(assembly.PeOf(member))];
}

// Returns true if `dest` lies in a space that CPUs do not reach, as it then does on all PEs.
bool IsOfDevices(const void* dest, size_t bytes) {
  const Segment* const segment = bytes == 0 ? nullptr : job.FindSegment(dest, bytes);
  return segment != nullptr && segment->is_by_stream;
}

// Returns true if `dest` lies in such a space and all PEs are local: then devices copy each block
// from the PE that has it to the others, in place of a way through host memory.
bool GoesByStream(const Assembly& assembly, const void* dest, size_t bytes) {
  return assembly.has_board() && IsOfDevices(dest, bytes);
}

// Returns once all PEs are here, so that their `dest` may be written, with the same size and root.
template <typename Before>
void MeetForCopies(const char* call, Assembly& assembly, size_t bytes, int root, Before&& before) {
  struct Size {
    uint64_t bytes;
    int64_t root;
  };
  const Size own{bytes, root};
  std::vector<Size> all(static_cast<size_t>(assembly.size()));
  assembly.GatherAfter(call, &own, sizeof(own), all.data(), before);
  for (int member = 0; member < assembly.size(); ++member) {
    const Size& theirs = all[static_cast<size_t>(member)];
    if (theirs.bytes != own.bytes || theirs.root != own.root) {
      Fail(call,
           "PE " + std::to_string(assembly.PeOf(member)) + " has passed " +
               (theirs.root != own.root ? "the root " + std::to_string(theirs.root)
                                        : "another size (" + std::to_string(theirs.bytes) +
                                              " bytes, here " + std::to_string(own.bytes) + ")") +
               ": all PEs of the team must pass the same");
    }
  }
}

// Copies one block to all PEs, this one included, or to all others. Each PE begins with the one
// behind it, so that not all write to one PE at a time.
void CopyToAll(const char* call, const Assembly& assembly, void* dest, const void* source,
               size_t bytes, bool with_self) {
  const bool by_stream = IsOfDevices(dest, bytes);
  for (int step = 1; step < assembly.size() + (with_self ? 1 : 0) && bytes != 0; ++step) {
    const int member = (assembly.self() + step) % assembly.size();
    CopyAnyhow(call, At(assembly, member, dest, bytes), source, bytes, by_stream);
  }
}

std::byte* Behind(void* memory, size_t bytes) { return static_cast<std::byte*>(memory) + bytes; }

size_t Times(int members, size_t bytes) { return static_cast<size_t>(members) * bytes; }

}  // namespace

int Sync(const char* call, const Group& group) {
  Assembly& assembly = AssemblyOf(call, group);
  assembly.SyncAfter(call, [&] { CheckCollective(call, assembly, {}); });
  return 0;
}

int Barrier(const char* call, const Group& group) {
  Assembly& assembly = AssemblyOf(call, group);
  assembly.SyncAfter(call, [&] {
    CheckCollective(call, assembly, {});
    Quiet(call, DefaultContext());
  });
  return 0;
}

int Broadcast(const char* call, const Group& group, void* dest, const void* source, size_t bytes,
              int root, bool writes_root) {
  Assembly& assembly = AssemblyOf(call, group);
  const auto check = [&] {
    CheckCollective(call, assembly,
                    {.dest = dest,
                     .dest_bytes = bytes,
                     .source = source,
                     .source_bytes = bytes,
                     .may_be_in_place = true,
                     .amount = bytes,
                     .root = root});
    if (root < 0 || root >= assembly.size()) {
      Fail(call, "the root " + std::to_string(root) + " is not between 0 and " +
                     std::to_string(assembly.size() - 1) + ", the PEs of the team or active set");
    }
    CheckSymmetric(call, "dest", dest, bytes);
  };
  const bool is_root = assembly.self() == root;
  if (GoesByStream(assembly, dest, bytes)) [[unlikely]] {
    assembly.SyncAfter(call, [&] {
      MeetForCopies(call, assembly, bytes, root, check);
      if (is_root) {
        CopyToAll(call, assembly, dest, source, bytes, writes_root);
      }
    });
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kBcast;
  problem.root = root;
  problem.in_place = true;
  problem.block_bytes = bytes;
  void* const data = is_root ? const_cast<void*>(source) : dest;
  if (assembly.size() > 1) {
    assembly.RunAfter(call, &problem, {.output = data}, check);
  } else {
    check();
  }
  if (is_root && writes_root) {
    CopyAnyhow(call, dest, source, bytes, false);
  }
  return 0;
}

int Fcollect(const char* call, const Group& group, void* dest, const void* source, size_t bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  const auto check = [&] {
    CheckCollective(call, assembly,
                    {.dest = dest,
                     .dest_bytes = Times(assembly.size(), bytes),
                     .source = source,
                     .source_bytes = bytes,
                     .amount = bytes});
    CheckSymmetric(call, "dest", dest, Times(assembly.size(), bytes));
  };
  if (GoesByStream(assembly, dest, bytes)) [[unlikely]] {
    assembly.SyncAfter(call, [&] {
      MeetForCopies(call, assembly, bytes, 0, check);
      CopyToAll(call, assembly, Behind(dest, Times(assembly.self(), bytes)), source, bytes, true);
    });
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kAllgather;
  problem.block_bytes = bytes;
  assembly.RunAfter(call, &problem, {.input = source, .output = dest}, check);
  return 0;
}

namespace {

// All blocks, of whatever sizes, go to all PEs of a team over several nodes.
void CollectByMessages(const char* call, Assembly& assembly, void* dest, const void* source,
                       const std::vector<size_t>& sizes) {
  Problem problem;
  problem.collective = Collective::kAllgather;
  problem.has_blocks = true;
  size_t offset = 0;
  for (const size_t bytes : sizes) {
    problem.receive_blocks.push_back({offset, bytes});
    offset += bytes;
  }
  assembly.Run(call, &problem, {.input = source, .output = dest});
}

}  // namespace

int Collect(const char* call, const Group& group, void* dest, const void* source, size_t bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  std::vector<size_t> sizes(static_cast<size_t>(assembly.size()));
  size_t offset = 0;  // of this PE's block
  const auto meet = [&] {
    assembly.GatherAfter(call, &bytes, sizeof(bytes), sizes.data(), [&] {
      CheckCollective(call, assembly,
                      {.dest = dest, .dest_bytes = bytes, .source = source, .source_bytes = bytes});
    });
    size_t all = 0;
    for (int member = 0; member < assembly.size(); ++member) {
      offset = member == assembly.self() ? all : offset;
      all += sizes[static_cast<size_t>(member)];
    }
    CheckSymmetric(call, "dest", dest, all);
    if (job.is_checking) {
      CheckApart(call, {"dest", dest, all}, {"source", source, bytes});
    }
  };
  if (!assembly.has_board()) {
    // A PE that gives up in `meet` may not have the sizes that the messages depend on. So it drops
    // out of a sync in their place: no PE gets past that without it, and the numbers of all stay in
    // step. One case remains: a PE that fails in the sync itself, such as by a lost link, after it
    // has told others that it is there: those may begin the messages without it.
    assembly.SyncAfter(call, meet);
    CollectByMessages(call, assembly, dest, source, sizes);
    return 0;
  }
  assembly.SyncAfter(call, [&] {
    meet();
    CopyToAll(call, assembly, Behind(dest, offset), source, bytes, true);
  });
  return 0;
}

int Alltoall(const char* call, const Group& group, void* dest, const void* source, size_t bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  const size_t all_bytes = Times(assembly.size(), bytes);
  const auto check = [&] {
    CheckCollective(call, assembly,
                    {.dest = dest,
                     .dest_bytes = all_bytes,
                     .source = source,
                     .source_bytes = all_bytes,
                     .amount = bytes});
    CheckSymmetric(call, "dest", dest, all_bytes);
  };
  if (GoesByStream(assembly, dest, bytes) && dest != source) [[unlikely]] {
    assembly.SyncAfter(call, [&] {
      MeetForCopies(call, assembly, bytes, 0, check);
      for (int step = 1; step <= assembly.size(); ++step) {
        const int member = (assembly.self() + step) % assembly.size();
        CopyByStream(call, At(assembly, member, Behind(dest, Times(assembly.self(), bytes)), bytes),
                     static_cast<const std::byte*>(source) + Times(member, bytes), bytes);
      }
    });
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kAlltoall;
  problem.in_place = dest == source;
  problem.block_bytes = bytes;
  assembly.RunAfter(call, &problem, {.input = source, .output = dest}, check);
  return 0;
}

namespace {

// Elements that lie `step` bytes apart. `by_stream`: `to` does.
void CopyElements(const char* call, std::byte* to, bool by_stream, size_t to_step,
                  const std::byte* from, size_t from_step, size_t elements, size_t element_bytes) {
  if (by_stream || IsByStream(from)) [[unlikely]] {
    return CopyBlocksByStream(call, to, by_stream, from, IsByStream(from),
                              {.dest_stride_bytes = static_cast<ptrdiff_t>(to_step),
                               .source_stride_bytes = static_cast<ptrdiff_t>(from_step),
                               .block_bytes = element_bytes,
                               .blocks = elements});
  }
  for (size_t i = 0; i < elements; ++i) {
    shm::CopyWords(to, from, element_bytes);
    to += to_step;
    from += from_step;
  }
}

// Of an alltoalls: `elements` for each PE.
struct Exchange {
  std::byte* dest;
  size_t to_step;
  const std::byte* source;
  size_t from_step;
  size_t elements;
  size_t element_bytes;

  size_t block_bytes() const { return elements * element_bytes; }
  // From the first element's beginning to the last one's end, of those of all PEs.
  size_t Extent(int members, size_t step) const {
    return elements == 0 ? 0 : (Times(members, elements) - 1) * step + element_bytes;
  }
};

// Of a team over several nodes: packed, exchanged, unpacked.
template <typename Before>
void AlltoallsByMessages(const char* call, Assembly& assembly, const Exchange& what,
                         Before&& before) {
  const size_t all = Times(assembly.size(), what.elements);
  const size_t bytes = what.element_bytes;
  Staging out;
  Staging in;
  Problem problem;
  problem.collective = Collective::kAlltoall;
  problem.block_bytes = what.block_bytes();
  collective::Binding binding;
  assembly.RunAfter(call, &problem, binding, [&] {
    before();
    out = MakeStaging(call, all * bytes, IsByStream(what.source));
    in = MakeStaging(call, all * bytes, IsByStream(what.dest));
    binding = {.input = out.get(), .output = in.get()};
    CopyElements(call, out.get(), false, bytes, what.source, what.from_step, all, bytes);
  });
  CopyElements(call, what.dest, IsByStream(what.dest), what.to_step, in.get(), bytes, all, bytes);
}

// Of a team of one node: each PE writes into the others' memory, once all are here.
template <typename Before>
void AlltoallsByCopies(const char* call, Assembly& assembly, const Exchange& what,
                       Before&& before) {
  const size_t extent = what.Extent(assembly.size(), what.to_step);
  assembly.SyncAfter(call, [&] {
    assembly.SyncAfter(call, before);
    const bool by_stream = IsOfDevices(what.dest, extent);
    for (int step = 0; step < assembly.size() && what.elements != 0; ++step) {
      const int member = (assembly.self() + step) % assembly.size();
      CopyElements(call,
                   At(assembly, member, what.dest, extent) +
                       Times(assembly.self(), what.elements * what.to_step),
                   by_stream, what.to_step,
                   what.source + Times(member, what.elements * what.from_step), what.from_step,
                   what.elements, what.element_bytes);
    }
  });
}

}  // namespace

int Alltoalls(const char* call, const Group& group, void* dest, const void* source,
              ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t elements,
              size_t element_bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  if (dest_stride < 1 || source_stride < 1) {
    Fail(call, "the strides are " + std::to_string(dest_stride) + " and " +
                   std::to_string(source_stride) + ": they are at least 1");
  }
  const Exchange what{static_cast<std::byte*>(dest),
                      static_cast<size_t>(dest_stride) * element_bytes,
                      static_cast<const std::byte*>(source),
                      static_cast<size_t>(source_stride) * element_bytes,
                      elements,
                      element_bytes};
  const auto check = [&] {
    const size_t dest_bytes = what.Extent(assembly.size(), what.to_step);
    CheckCollective(call, assembly,
                    {.dest = dest,
                     .dest_bytes = dest_bytes,
                     .source = source,
                     .source_bytes = what.Extent(assembly.size(), what.from_step),
                     .amount = what.block_bytes(),
                     .dest_stride = dest_stride,
                     .source_stride = source_stride});
    CheckSymmetric(call, "dest", dest, dest_bytes);
  };
  if (assembly.has_board()) {
    AlltoallsByCopies(call, assembly, what, check);
  } else {
    AlltoallsByMessages(call, assembly, what, check);
  }
  return 0;
}

// ---- Reductions ---------------------------------------------------------------------------------

namespace {

void CheckReduction(const char* call, Assembly& assembly, const void* dest, const void* source,
                    size_t count, size_t bytes) {
  CheckCollective(call, assembly,
                  {.dest = dest,
                   .dest_bytes = bytes,
                   .source = source,
                   .source_bytes = bytes,
                   .may_be_in_place = true,
                   .amount = count,
                   .counts_elements = true});
  CheckSymmetric(call, "dest", dest, bytes);
}

}  // namespace

int Reduce(const char* call, const Group& group, void* dest, const void* source, size_t count,
           ReduceType type, ReduceOp op) {
  Assembly& assembly = AssemblyOf(call, group);
  ElementReducer reducer(type, op);
  Problem problem;
  problem.collective = Collective::kAllreduce;
  problem.in_place = dest == source;
  problem.element_bytes = BytesOf(type);
  problem.block_bytes = count * problem.element_bytes;
  assembly.RunAfter(call, &problem, {.input = source, .output = dest, .reducer = &reducer}, [&] {
    CheckReduction(call, assembly, dest, source, count, problem.block_bytes);
  });
  return 0;
}

int Scan(const char* call, const Group& group, void* dest, const void* source, size_t count,
         ReduceType type, bool inclusive) {
  Assembly& assembly = AssemblyOf(call, group);
  ElementReducer reducer(type, ReduceOp::kSum);
  Problem problem;
  problem.collective = inclusive ? Collective::kScan : Collective::kExscan;
  problem.in_place = dest == source;
  problem.element_bytes = BytesOf(type);
  problem.block_bytes = count * problem.element_bytes;
  assembly.RunAfter(call, &problem, {.input = source, .output = dest, .reducer = &reducer}, [&] {
    CheckReduction(call, assembly, dest, source, count, problem.block_bytes);
  });
  if (!inclusive && assembly.self() == 0 && count != 0) {
    // The sum of nothing, where MPI says nothing.
    if (IsByStream(dest)) {
      ClearByStream(call, dest, problem.block_bytes);
    } else {
      std::memset(dest, 0, problem.block_bytes);
    }
  }
  return 0;
}

}  // namespace ferry::shmem
