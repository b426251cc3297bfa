"""torch_geometric: graph networks classify nodes and graphs, with loaders and explanations."""

from __future__ import annotations

import io
from typing import Any

import torch
from harness import run
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_undirected


class Net(torch.nn.Module):
    """Three kinds of convolutions and a mean over each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = GCNConv(8, 16), GATConv(16, 8, heads=2), SAGEConv(16, 16)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        x = self.first(x, edges).relu()
        x = self.second(x, edges).relu()
        return self.last(global_mean_pool(self.third(x, edges), batch))


def main() -> dict[str, Any]:
    graphs = []
    for label in range(24):
        edges = to_undirected(torch.randint(0, 10, (2, 20)))
        graphs.append(Data(x=torch.randn(10, 8), edge_index=edges, y=torch.tensor([label % 3])))
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        for batch in DataLoader(graphs, batch_size=8, shuffle=True):
            loss = torch.nn.functional.cross_entropy(net(batch.x, batch.edge_index, batch.batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "graph": graphs[0].to_dict()}, file)
    file.seek(0)
    kept = Data.from_dict(torch.load(file)["graph"])
    degrees = degree(add_self_loops(kept.edge_index, num_nodes=10)[0][0], 10)
    return {"losses": losses, "degrees": degrees}


if __name__ == "__main__":
    run(main)
