// Collectives over teams and active sets (OpenSHMEM 1.5, section 9.9, and those that it has
// deprecated). See operations.h. What the engine of MPI's collectives can do it does; where PEs
// write into each other's memory in a pattern of OpenSHMEM's own, they meet before and after.
#include <cstring>
#include <string>
#include <vector>

#include "client/shmem/active_sets.h"
#include "client/shmem/assembly.h"
#include "client/shmem/call_comparison.h"
#include "client/shmem/checks.h"
#include "client/shmem/copies.h"
#include "client/shmem/fail.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/reach.h"
#include "client/shmem/reduction.h"
#include "client/shmem/team.h"

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

// Whether `dest` lies in a space that CPUs do not reach, as it then does on all PEs.
bool IsOfDevices(const void* dest, size_t bytes) {
  const Segment* const segment = bytes == 0 ? nullptr : job.FindSegment(dest, bytes);
  return segment != nullptr && segment->is_by_stream;
}

// Where it does, and all PEs are near, each block goes from the PE that has it to the others by
// copies of the devices, in place of a way through host memory.
bool GoesByStream(const Assembly& assembly, const void* dest, size_t bytes) {
  return assembly.has_board() && IsOfDevices(dest, bytes);
}

// Returns once all PEs are here, so that their `dest` may be written, with the same size and root.
void MeetForCopies(const char* call, Assembly& assembly, size_t bytes, int root) {
  struct Size {
    uint64_t bytes;
    int64_t root;
  };
  const Size own{bytes, root};
  std::vector<Size> all(static_cast<size_t>(assembly.size()));
  assembly.Gather(call, &own, sizeof(own), all.data());
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

// The same block to all, this PE included, or to all others. Each PE begins with the one behind it,
// so that not all write to one PE at a time.
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
  CheckCollective(call, assembly, {});
  assembly.Sync(call);
  return 0;
}

int Barrier(const char* call, const Group& group) {
  Quiet(call, DefaultContext());
  return Sync(call, group);
}

int Broadcast(const char* call, const Group& group, void* dest, const void* source, size_t bytes,
              int root, bool writes_root) {
  Assembly& assembly = AssemblyOf(call, group);
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
  const bool is_root = assembly.self() == root;
  if (GoesByStream(assembly, dest, bytes)) [[unlikely]] {
    MeetForCopies(call, assembly, bytes, root);
    if (is_root) {
      CopyToAll(call, assembly, dest, source, bytes, writes_root);
    }
    assembly.Sync(call);
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kBcast;
  problem.root = root;
  problem.in_place = true;
  problem.block_bytes = bytes;
  void* const data = is_root ? const_cast<void*>(source) : dest;
  if (assembly.size() > 1) {
    assembly.Run(call, &problem, {.output = data});
  }
  if (is_root && writes_root) {
    CopyAnyhow(call, dest, source, bytes, false);
  }
  return 0;
}

int Fcollect(const char* call, const Group& group, void* dest, const void* source, size_t bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  CheckCollective(call, assembly,
                  {.dest = dest,
                   .dest_bytes = Times(assembly.size(), bytes),
                   .source = source,
                   .source_bytes = bytes,
                   .amount = bytes});
  CheckSymmetric(call, "dest", dest, Times(assembly.size(), bytes));
  if (GoesByStream(assembly, dest, bytes)) [[unlikely]] {
    MeetForCopies(call, assembly, bytes, 0);
    CopyToAll(call, assembly, Behind(dest, Times(assembly.self(), bytes)), source, bytes, true);
    assembly.Sync(call);
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kAllgather;
  problem.block_bytes = bytes;
  assembly.Run(call, &problem, {.input = source, .output = dest});
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
  CheckCollective(call, assembly,
                  {.dest = dest, .dest_bytes = bytes, .source = source, .source_bytes = bytes});
  std::vector<size_t> sizes(static_cast<size_t>(assembly.size()));
  assembly.Gather(call, &bytes, sizeof(bytes), sizes.data());
  size_t offset = 0;
  size_t all = 0;
  for (int member = 0; member < assembly.size(); ++member) {
    offset = member == assembly.self() ? all : offset;
    all += sizes[static_cast<size_t>(member)];
  }
  CheckSymmetric(call, "dest", dest, all);
  if (job.is_checking) {
    CheckApart(call, {"dest", dest, all}, {"source", source, bytes});
  }
  if (!assembly.has_board()) {
    CollectByMessages(call, assembly, dest, source, sizes);
    return 0;
  }
  CopyToAll(call, assembly, Behind(dest, offset), source, bytes, true);
  assembly.Sync(call);
  return 0;
}

int Alltoall(const char* call, const Group& group, void* dest, const void* source, size_t bytes) {
  Assembly& assembly = AssemblyOf(call, group);
  const size_t all_bytes = Times(assembly.size(), bytes);
  CheckCollective(call, assembly,
                  {.dest = dest,
                   .dest_bytes = all_bytes,
                   .source = source,
                   .source_bytes = all_bytes,
                   .amount = bytes});
  CheckSymmetric(call, "dest", dest, all_bytes);
  if (GoesByStream(assembly, dest, bytes) && dest != source) [[unlikely]] {
    MeetForCopies(call, assembly, bytes, 0);
    for (int step = 1; step <= assembly.size(); ++step) {
      const int member = (assembly.self() + step) % assembly.size();
      CopyByStream(call, At(assembly, member, Behind(dest, Times(assembly.self(), bytes)), bytes),
                   static_cast<const std::byte*>(source) + Times(member, bytes), bytes);
    }
    assembly.Sync(call);
    return 0;
  }
  Problem problem;
  problem.collective = Collective::kAlltoall;
  problem.in_place = dest == source;
  problem.block_bytes = bytes;
  assembly.Run(call, &problem, {.input = source, .output = dest});
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
    std::memcpy(to, from, element_bytes);
    to += to_step;
    from += from_step;
  }
}

// Of `elements` for each PE of a team over several nodes: packed, exchanged, unpacked.
void AlltoallsByMessages(const char* call, Assembly& assembly, std::byte* dest, size_t to_step,
                         const std::byte* source, size_t from_step, size_t elements,
                         size_t element_bytes) {
  const size_t all = Times(assembly.size(), elements);
  std::vector<std::byte> out(all * element_bytes);
  std::vector<std::byte> in(all * element_bytes);
  CopyElements(call, out.data(), false, element_bytes, source, from_step, all, element_bytes);
  Problem problem;
  problem.collective = Collective::kAlltoall;
  problem.block_bytes = elements * element_bytes;
  assembly.Run(call, &problem, {.input = out.data(), .output = in.data()});
  CopyElements(call, dest, IsByStream(dest), to_step, in.data(), element_bytes, all, element_bytes);
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
  const auto to_step = static_cast<size_t>(dest_stride) * element_bytes;
  const auto from_step = static_cast<size_t>(source_stride) * element_bytes;
  const size_t all = Times(assembly.size(), elements);
  const size_t extent = all == 0 ? 0 : (all - 1) * to_step + element_bytes;
  CheckCollective(call, assembly,
                  {.dest = dest,
                   .dest_bytes = extent,
                   .source = source,
                   .source_bytes = all == 0 ? 0 : (all - 1) * from_step + element_bytes,
                   .amount = elements * element_bytes,
                   .dest_stride = dest_stride,
                   .source_stride = source_stride});
  CheckSymmetric(call, "dest", dest, extent);
  const auto* const from = static_cast<const std::byte*>(source);
  if (!assembly.has_board()) {
    AlltoallsByMessages(call, assembly, static_cast<std::byte*>(dest), to_step, from, from_step,
                        elements, element_bytes);
    return 0;
  }
  assembly.Sync(call);  // all are here, so their dest may be written
  const bool by_stream = IsOfDevices(dest, extent);
  for (int step = 0; step < assembly.size() && elements != 0; ++step) {
    const int member = (assembly.self() + step) % assembly.size();
    CopyElements(call,
                 At(assembly, member, dest, extent) + Times(assembly.self(), elements * to_step),
                 by_stream, to_step, from + Times(member, elements * from_step), from_step,
                 elements, element_bytes);
  }
  assembly.Sync(call);
  return 0;
}

// ---- Reductions ---------------------------------------------------------------------------------

namespace {

CollectiveCall ReductionCall(const void* dest, const void* source, size_t count, size_t bytes) {
  return {.dest = dest,
          .dest_bytes = bytes,
          .source = source,
          .source_bytes = bytes,
          .may_be_in_place = true,
          .amount = count,
          .counts_elements = true};
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
  CheckCollective(call, assembly, ReductionCall(dest, source, count, problem.block_bytes));
  CheckSymmetric(call, "dest", dest, problem.block_bytes);
  assembly.Run(call, &problem, {.input = source, .output = dest, .reducer = &reducer});
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
  CheckCollective(call, assembly, ReductionCall(dest, source, count, problem.block_bytes));
  CheckSymmetric(call, "dest", dest, problem.block_bytes);
  assembly.Run(call, &problem, {.input = source, .output = dest, .reducer = &reducer});
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
