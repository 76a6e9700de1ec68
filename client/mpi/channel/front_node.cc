#include "client/mpi/channel/front_node.h"

#include <functional>

#include "client/mpi/base/connection.h"
#include "client/mpi/channel/staging.h"

namespace ferry::mpi {
namespace {

shm::Location LocationOf(const NodeAddress& address) {
  return {address.region, address.flags, address.address};
}

}  // namespace

void FrontNode::WaitFor(bool (*done)(void*), void* argument) {
  if (watch_ == nullptr) {
    front_end->WaitFor(done, argument);
    return;
  }
  CallWatch::Wait wait(watch_, watch_->blocking_call());
  const std::function<bool(int)> is_absent = [this](int member) {
    return !board_->HasCome(member);
  };
  while (!done(argument) && front_end->poison() == ErrorCode::kOk) {
    front_end->WaitFor(done, argument, client::kAny, wait.end_ns());
    wait.Look(&is_absent);
  }
}

void FrontNode::Wake(int member) { front_end->WakePeer(RankOf(member)); }

ErrorCode FrontNode::StateOf(int member) { return front_end->PeerState(RankOf(member)); }

NodeAddress FrontNode::Locate(const void* pointer, size_t size_bytes) {
  const shm::Location location = front_end->Locate(pointer, size_bytes);
  return {location.region, location.flags, location.address};
}

ErrorCode FrontNode::Read(int member, const NodeAddress& from, void* to, size_t size_bytes) {
  return front_end->CopyFromPeer(RankOf(member), LocationOf(from), to, size_bytes);
}

ErrorCode FrontNode::Write(int member, const NodeAddress& to, const void* from, size_t size_bytes) {
  return front_end->CopyToPeer(RankOf(member), LocationOf(to), from, size_bytes);
}

bool FrontNode::IsByStream(const void* pointer) { return front_end->IsByStream(pointer); }

ErrorCode FrontNode::Copy(void* to, const void* from, size_t size_bytes) {
  return front_end->Copy(to, from, size_bytes).code();
}

void* FrontNode::TakeStaging(size_t size_bytes) { return mpi::TakeStaging(size_bytes); }

void FrontNode::GiveStaging(void* memory) { mpi::GiveStaging(memory); }

}  // namespace ferry::mpi
