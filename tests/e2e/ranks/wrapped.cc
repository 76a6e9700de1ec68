// The C++ wrapper of streams and queues: two ranks exchange messages through it, and exceptions
// report errors.
#include <cstring>
#include <string>

#include "ferry/stream.hpp"
#include "tests/e2e/ranks/check.h"

namespace {

void Add(void* word) { *static_cast<long*>(word) += 1; }

void ByStream(ferry::PersistentRequest& receive, ferry::PersistentRequest& send, long* coming,
              long* going) {
  ferry::Stream stream;
  ferry::Queue queue(stream);
  const ferry_request both[] = {receive.handle(), send.handle()};
  *going = 1;
  for (int round = 1; round <= 10; ++round) {
    queue.EnqueueStart(both);
    queue.EnqueueWait(both);
    stream.Copy(going, coming, sizeof(*going));
    stream.Launch(Add, going);
  }
  queue.Wait();
  stream.Synchronize();
  CHECK_EQ(*going, 11);

  queue.EnqueueStart(receive.handle());
  queue.EnqueueStart(send.handle());
  queue.EnqueueWait(send.handle());
  queue.EnqueueWait(receive.handle());
  queue.Wait();
  CHECK_EQ(*coming, 11);
}

}  // namespace

int main() {
  ferry::Session session;
  const int partner = 1 - session.rank();
  long going = 0;
  long coming = 0;
  {
    using ferry::PersistentRequest;
    PersistentRequest receive = PersistentRequest::Receive(&coming, sizeof(coming), partner, 1);
    PersistentRequest send = PersistentRequest::Send(&going, sizeof(going), partner, 1);
    CHECK_EQ(receive.is_matched(), false);
    const ferry_request both[] = {receive.handle(), send.handle()};
    ferry::MatchAll(both);
    CHECK_EQ(receive.is_matched(), true);
    ByStream(receive, send, &coming, &going);

    going = 100 + session.rank();
    receive.Start();
    send.Start();
    CHECK_EQ(receive.Wait().source, partner);
    send.Wait();
    CHECK_EQ(coming, 100 + partner);

    PersistentRequest unmatched = PersistentRequest::ReadySend(&going, sizeof(going), partner, 2);
    ferry::Stream stream;
    ferry::Queue queue(stream);
    int code = FERRY_SUCCESS;
    try {
      queue.EnqueueStart(unmatched.handle());
    } catch (const ferry::Error& error) {
      code = error.code();
      CHECK_EQ(std::strstr(error.what(), "is not matched") != nullptr, true);
    }
    CHECK_EQ(code, FERRY_ERR_REQUEST);
  }
  session.Barrier();
  return 0;
}
