#include "tools/ferrysim/published.h"

namespace ferry::sim {

const std::vector<PublishedProblem>& PublishedProblems() {
  static const std::vector<PublishedProblem> problems = {{"2 GB", 16384, 6156},
                                                         {"30 GB", 61440, 88670}};
  return problems;
}

const std::vector<PublishedBest>& TableFive() {
  static const std::vector<PublishedBest> rows = {{16384, SendKind::kCpu, 50.23, 1024, 1024},
                                                  {16384, SendKind::kReady, 50.23, 512, 1024},
                                                  {16384, SendKind::kRegular, 40.49, 512, 1024},
                                                  {61440, SendKind::kCpu, 485.4, 1024, 4096},
                                                  {61440, SendKind::kReady, 622.2, 1024, 8192},
                                                  {61440, SendKind::kRegular, 543.7, 1024, 4096}};
  return rows;
}

const std::vector<PublishedIteration>& PublishedIterations() {
  static const std::vector<PublishedIteration> iterations = {
      {16384, 4, 1588, 1592, 1609},       {16384, 8, 864.3, 869.4, 894.3},
      {16384, 128, 168.9, 181.7, 187.8},  {16384, 256, 143.6, 162.4, 169.8},
      {16384, 512, 132.0, 160.4, 159.1},  {16384, 1024, 129.4, 161.2, 134.7},
      {16384, 2048, 131.1, 162.2, 135.4}, {16384, 4096, 135.4, 166.1, 131.4},
      {16384, 8192, 142.2, 177.8, 135.4}, {61440, 4, 21674, 21795, 21586},
      {61440, 8, 10744, 10884, 10776},    {61440, 64, 1420, 1431, 1439},
      {61440, 128, 781.6, 788.2, 797.6},  {61440, 256, 466.4, 475.6, 489.2},
      {61440, 512, 299.2, 309.2, 325.6},  {61440, 1024, 217.6, 228.3, 246.0},
      {61440, 2048, 161.6, 174.6, 200.4}, {61440, 4096, 141.7, 168.7, 185.7},
      {61440, 8192, 143.1, 176.2, 189.5}};
  return iterations;
}

}  // namespace ferry::sim
