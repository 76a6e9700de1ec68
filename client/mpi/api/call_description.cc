#include <utility>
#include <vector>

#include "client/mpi/api/collective_call.h"

namespace ferry::mpi {
namespace {

bool HasRoot(Collective collective) {
  return collective == Collective::kBcast || collective == Collective::kGather ||
         collective == Collective::kScatter || collective == Collective::kReduce;
}

// The lists of one rank, whose entries say nothing at first.
class Lists {
 public:
  explicit Lists(int ranks) : ranks_(static_cast<size_t>(ranks)) {
    entries_.assign(2 * ranks_, {.elements = kSaysNothing});
  }
  void Send(size_t to, const DataRecord& data) { entries_[to] = data; }
  void SendToAll(const DataRecord& data) {
    for (size_t to = 0; to < ranks_; ++to) {
      Send(to, data);
    }
  }
  void SendEach(const std::vector<DataRecord>& data) {
    for (size_t to = 0; to < data.size(); ++to) {
      Send(to, data[to]);
    }
  }
  void Receive(size_t from, const DataRecord& data) { entries_[ranks_ + from] = data; }
  void ReceiveFromAll(const DataRecord& data) {
    for (size_t from = 0; from < ranks_; ++from) {
      Receive(from, data);
    }
  }
  void ReceiveEach(const std::vector<DataRecord>& data) {
    for (size_t from = 0; from < data.size(); ++from) {
      Receive(from, data[from]);
    }
  }
  std::vector<DataRecord> Take() { return std::move(entries_); }

 private:
  const size_t ranks_;
  std::vector<DataRecord> entries_;
};

// The lists of the forms with v and w, and of a reduce_scatter.
std::vector<DataRecord> ListsOf(const Comm& comm, const CollectiveOperation& operation) {
  const Problem& problem = operation.problem;
  const auto self = static_cast<size_t>(comm.rank());
  const auto root = static_cast<size_t>(problem.root);
  const std::vector<DataRecord>& sent = operation.input.block_records();
  const std::vector<DataRecord>& received = operation.output.block_records();
  Lists lists(comm.size());
  switch (problem.collective) {
    case Collective::kGather:
      if (self == root) {
        lists.ReceiveEach(received);
      } else {
        lists.Send(root, operation.input.RecordOfPart(1));
      }
      break;
    case Collective::kScatter:
      if (self == root) {
        lists.SendEach(sent);
      } else {
        lists.Receive(root, operation.output.RecordOfPart(1));
      }
      break;
    case Collective::kAllgather:
      lists.ReceiveEach(received);
      lists.SendToAll(problem.in_place ? received[self] : operation.input.RecordOfPart(1));
      break;
    case Collective::kAlltoall:
      lists.ReceiveEach(received);
      lists.SendEach(problem.in_place ? received : sent);
      break;
    default: {  // a reduce_scatter: each names the parts of all
      const Datatype& type = operation.reducer.type();
      std::vector<DataRecord> parts;
      for (const Block& block : problem.receive_blocks) {
        const auto bytes = static_cast<int64_t>(block.size_bytes);
        const int64_t count = type.size_bytes() == 0 ? 0 : bytes / type.size_bytes();
        parts.push_back(RecordOf(count, type));
      }
      lists.SendEach(parts);
      lists.ReceiveFromAll(parts[self]);
    }
  }
  return lists.Take();
}

// The datatype that all ranks' data are of, and how much of it, where all have the same amount.
void DescribeData(const Comm& comm, const CollectiveOperation& operation, CallRecord* record) {
  const Problem& problem = operation.problem;
  const bool is_root = comm.rank() == problem.root;
  const CollectiveBuffer* buffer = &operation.output;
  int64_t times = 1;
  switch (problem.collective) {
    case Collective::kBarrier:
      return;
    case Collective::kBcast:
      break;
    case Collective::kGather:
      buffer = is_root ? &operation.output : &operation.input;
      times = is_root ? comm.size() : 1;
      break;
    case Collective::kScatter:
      buffer = is_root ? &operation.input : &operation.output;
      times = is_root ? comm.size() : 1;
      break;
    case Collective::kAllgather:
    case Collective::kAlltoall:
      times = comm.size();
      break;
    default:
      buffer = problem.in_place ? &operation.output : &operation.input;
      times = problem.collective == Collective::kReduceScatter ? comm.size() : 1;
  }
  if (buffer->type() == nullptr) {
    return;
  }
  record->has_data = 1;
  record->data = buffer->RecordOfPart(times);
  if (const BasicType* const basic = buffer->type()->basic(); basic != nullptr) {
    SetText(record->type, basic->name);
  }
}

}  // namespace

CallDescription DescribeCall(const char* call, const Comm& comm,
                             const CollectiveOperation& operation, const Failure& failure) {
  CallDescription description;
  CallRecord& record = description.record;
  const Problem& problem = operation.problem;
  SetName(&record, call);
  record.collective = static_cast<uint8_t>(problem.collective);
  record.is_inter = comm.is_inter() ? 1 : 0;
  if (!failure.ok()) {
    record.has_failed = 1;
    SetText(record.text, failure.text);
    return description;
  }
  record.root = HasRoot(problem.collective) ? problem.root : 0;
  record.in_place = problem.in_place ? 1 : 0;
  if (operation.reduces) {
    const Op& op = operation.reducer.op();
    SetText(record.op, op.IsPredefined() ? op.name() : "an operation of its own");
  }
  if (comm.is_inter() || IsAmongNeighbours(problem.collective)) {
    return description;
  }
  if (problem.has_blocks) {
    record.has_lists = 1;
    description.lists = ListsOf(comm, operation);
  } else {
    DescribeData(comm, operation, &record);
  }
  return description;
}

}  // namespace ferry::mpi
