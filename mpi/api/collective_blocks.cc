#include "mpi/api/collective_blocks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "mpi/api/message_arguments.h"
#include "mpi/base/handle_table.h"
#include "mpi/coll/comm_messenger.h"

namespace ferry::mpi {
namespace {

using collective::Block;
using collective::kRootBeside;
using collective::kRootHere;

void* Mutable(const void* buffer) { return const_cast<void*>(buffer); }

}  // namespace

Failure Bind(const Run& run, int times, CollectiveBuffer* buffer, size_t* bytes) {
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindDatatype(run.datatype, run.type_name, &type));
  // A rank without neighbours needs no buffer for what they would have sent.
  const int64_t count = times != 0 ? run.count : std::min<int64_t>(run.count, 0);
  FERRY_RETURN_FAILURE(CheckData(run.buffer, count, *type));
  if (times > 1 && run.count > INT64_MAX / times) [[unlikely]] {
    return {MPI_ERR_COUNT, "the count " + std::to_string(run.count) + " for each of " +
                               std::to_string(times) + " ranks is too large"};
  }
  FERRY_RETURN_FAILURE(CheckData(run.buffer, run.count * times, *type));
  *bytes = static_cast<size_t>(run.count) * static_cast<size_t>(type->size_bytes());
  return buffer->Set(Mutable(run.buffer), run.count * times, *type, false);
}

Failure BindOwnInput(const Run& send, CollectiveOperation* operation, size_t* bytes) {
  operation->input_read = {0, send.count};
  return Bind(send, 1, &operation->input, bytes);
}

std::vector<Block> InARow(int count, size_t block_bytes) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    blocks.push_back({i * block_bytes, block_bytes});
  }
  return blocks;
}

Failure BindBlocks(const Run& run, int count, CollectiveBuffer* buffer,
                   std::vector<Block>* places) {
  size_t bytes = 0;
  FERRY_RETURN_FAILURE(Bind(run, count, buffer, &bytes));
  *places = InARow(count, bytes);
  return {};
}

const void* AddressOf(const Blocks& blocks, int i) {
  if (blocks.buffer == MPI_BOTTOM) {
    return MPI_BOTTOM;
  }
  const int64_t unit = blocks.datatypes != nullptr ? 1 : datatypes.Find(blocks.datatype)->extent();
  return static_cast<const char*>(blocks.buffer) + blocks.displacements[i] * unit;
}

Failure BindBlocks(const Blocks& blocks, int count, CollectiveBuffer* buffer,
                   std::vector<Block>* places) {
  const std::string name = blocks.name;
  if (count != 0 && (blocks.counts.is_null() || blocks.displacements.is_null())) [[unlikely]] {
    return {MPI_ERR_ARG, "the " + name + " counts or displacements are null"};
  }
  std::vector<BlockArguments> arguments;
  for (int i = 0; i < count; ++i) {
    const Datatype* type = nullptr;
    const bool has_own = blocks.datatypes != nullptr;
    const int64_t elements = blocks.counts[i];
    // Programs name no datatype where they exchange nothing.
    const bool is_none = has_own && elements == 0 && blocks.datatypes[i] == MPI_DATATYPE_NULL;
    const MPI_Datatype handle = has_own ? blocks.datatypes[i] : blocks.datatype;
    FERRY_RETURN_FAILURE(FindDatatype(is_none ? MPI_BYTE : handle, (name + "type").c_str(), &type));
    const int64_t displacement = blocks.displacements[i] * (has_own ? 1 : type->extent());
    auto* address = static_cast<char*>(Mutable(blocks.buffer)) + displacement;
    if (Failure failure = CheckData(address, elements, *type); !failure.ok()) [[unlikely]] {
      failure.text = "block " + std::to_string(i) + " of " + name + "buf: " + failure.text;
      return failure;
    }
    arguments.push_back({address, elements, type});
  }
  return buffer->Set(arguments, places);
}

Failure CheckOwn(size_t sent, size_t received) {
  if (sent == received) [[likely]] {
    return {};
  }
  return {sent > received ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
          "this rank sends itself " + std::to_string(sent) + " bytes, but receives " +
              std::to_string(received)};
}

// ---- Intercommunicators -------------------------------------------------------------------------

Failure DescribeInter(const Comm& comm, CollectiveOperation* operation) {
  Sides sides = SidesOf(comm);
  operation->problem.is_inter = true;
  operation->problem.sources = std::move(sides.own);
  operation->problem.destinations = std::move(sides.remote);
  return {};
}

Failure DescribeInter(const Comm& comm, int root, CollectiveOperation* operation) {
  if (root != MPI_ROOT && root != MPI_PROC_NULL && !comm.IsPeer(root)) [[unlikely]] {
    return {MPI_ERR_ROOT, "the root " + std::to_string(root) +
                              " is neither MPI_ROOT nor MPI_PROC_NULL nor a rank of the remote "
                              "group, which has ranks 0 to " +
                              std::to_string(comm.peers().size() - 1)};
  }
  operation->problem.root = root == MPI_ROOT        ? kRootHere
                            : root == MPI_PROC_NULL ? kRootBeside
                                                    : root;
  return DescribeInter(comm, operation);
}

}  // namespace ferry::mpi
