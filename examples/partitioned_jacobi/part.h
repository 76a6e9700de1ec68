// One rank's part of the plane: its cells, the edges that it exchanges with its neighbours, and the
// requests.
#pragma once

#include <mpi.h>
#include <mpix.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "examples/partitioned_jacobi/kernel.h"
#include "ferry/stream.hpp"

namespace partitioned_jacobi {

// The ranks as a grid, each with tiles of the same size.
struct Layout {
  const char* name;
  std::array<int, 2> ranks;  // down, across
  heat_shape shape;          // of each

  uint64_t plane_width() const { return heat_width(shape) * static_cast<uint64_t>(ranks[1]); }
  uint64_t plane_height() const { return heat_height(shape) * static_cast<uint64_t>(ranks[0]); }
};

// Edges have two buffers each way, and two sets of requests: step n uses those of n % 2, while the
// kernel reads the edges that have come in the step before.
class Part {
 public:
  Part(const Layout& layout, int rank);
  ~Part();
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  // Sets all cells to cold, except the upper edge of the plane.
  void Begin();
  // Compute so many steps from the beginning on.
  void StepsWithPartitions(int steps);
  void StepsAfterSynchronising(int steps);
  void StepsOnQueue(int steps);

  // The rank's own cells after the last step; empty if a call of a kernel failed.
  std::vector<double> Cells();

 private:
  struct Work;
  // One direction of the exchange with one neighbour, in steps of one parity.
  struct Exchange {
    ferry::Buffer<double> in;
    ferry::Buffer<double> out;
    MPI_Request partitioned_send = MPI_REQUEST_NULL;
    MPI_Request partitioned_receive = MPI_REQUEST_NULL;
    MPI_Request plain_send = MPI_REQUEST_NULL;
    MPI_Request plain_receive = MPI_REQUEST_NULL;
    MPIX_Prequest prequest = MPIX_PREQUEST_NULL;
  };
  // The requests for all neighbours, in steps of one parity, as the calls want them.
  struct Requests {
    std::vector<MPI_Request> partitioned;  // sends, then receives
    std::vector<MPI_Request> plain;        // likewise
    int sends = 0;
  };

  void FindNeighbours();
  void MakeExchanges(int parity, MPI_Info units);
  void CollectRequests(int parity);
  // Returns the description of the sides for kernels of a parity, with or without Prequests.
  const heat_side* SidesOf(int parity, bool is_partitioned) const;
  void Launch(int step, bool is_partitioned);
  void Prepare(int steps);

  Layout layout_;
  int rank_;
  std::array<int, HEAT_SIDES> neighbours_;
  ferry::Buffer<double> cells_;
  ferry::Buffer<heat_side> sides_;                  // [parity][is_partitioned][side]
  std::array<std::vector<Exchange>, 2> exchanges_;  // [parity], by the order of neighbours
  std::array<Requests, 2> requests_;
  std::vector<std::unique_ptr<Work>> steps_;  // the kernels' arguments
  int steps_taken_ = 0;
  ferry::Stream stream_;
};

}  // namespace partitioned_jacobi
