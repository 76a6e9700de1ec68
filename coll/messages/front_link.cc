#include "coll/messages/front_link.h"

namespace ferry::collective {

void FrontLink::WaitFor(bool (*done)(void*), void* argument) {
  front_end_->peers->WaitFor(done, argument);
}

void FrontLink::NoteAwaited(int member) {
  const bool is_any = member >= 0;
  front_end_->calls->NoteMissing(is_any ? WorldRank(member) : shm::kCallNoRank, is_any ? 1 : 0);
}

void FrontLink::Wake(int member) { front_end_->peers->WakePeer(RankOf(member)); }

ErrorCode FrontLink::StateOf(int member) { return front_end_->peers->PeerState(RankOf(member)); }

NodeAddress FrontLink::Locate(const void* pointer, size_t size_bytes) {
  const shm::Location location = front_end_->one_sided->LocateHere(pointer, size_bytes);
  return {location.region, location.flags, location.address};
}

ErrorCode FrontLink::Read(int member, const NodeAddress& from, void* to, size_t size_bytes) {
  return front_end_->peers->CopyFromPeer(RankOf(member), LocationOf(from), to, size_bytes);
}

ErrorCode FrontLink::Write(int member, const NodeAddress& to, const void* from, size_t size_bytes) {
  return front_end_->peers->CopyToPeer(RankOf(member), LocationOf(to), from, size_bytes);
}

bool FrontLink::IsByStream(const void* pointer) { return front_end_->IsByStream(pointer); }

ErrorCode FrontLink::Copy(void* to, const void* from, size_t size_bytes) {
  const Status copied = front_end_->memory->Copy(to, from, size_bytes);
  if (!copied.ok()) {
    copy_failure_ = copied;
  }
  return copied.code();
}

}  // namespace ferry::collective
