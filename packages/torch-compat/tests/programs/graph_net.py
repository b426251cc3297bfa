"""Nets on graphs: a convolution by the normalized adjacency matrix, attention over neighbours, and
messages by index_add and scatter_reduce.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import Parameter

torch.manual_seed(42)
N = 60
group = torch.arange(N) % 3
chance = torch.where(group[:, None] == group, 0.25, 0.02)
adjacency = torch.bernoulli(chance.triu(1))
adjacency = adjacency + adjacency.T
features = torch.cat([torch.randn(N, 8), 0.7 * F.one_hot(group, 3) + torch.randn(N, 3)], 1)
with_self = adjacency + torch.eye(N)
degree = with_self.sum(1).pow(-0.5)
normalized = degree[:, None] * with_self * degree[None, :]
edges = with_self.nonzero().t()
train = torch.zeros(N, dtype=torch.bool)
train[torch.randperm(N)[:24]] = True


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = Parameter(torch.empty(inputs, outputs))
        self.bias = Parameter(torch.empty(outputs))
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return torch.mm(normalized, torch.mm(x, self.weight)) + self.bias


class Messages(nn.Module):
    """The mean of what neighbours say."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.other = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x):
        target, source = edges
        heard = torch.zeros(N, x.size(1)).index_add_(0, target, x[source])
        count = torch.zeros(N).scatter_add(0, target, torch.ones(len(target))).clamp(min=1)
        return self.own(x) + self.other(heard / count.unsqueeze(1))


class Attention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.W = Parameter(torch.empty(inputs, outputs))
        self.a = Parameter(torch.empty(2 * outputs, 1))
        for weight in (self.W, self.a):
            nn.init.xavier_uniform_(weight.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(0.2)

    def forward(self, x):
        h = x @ self.W
        half = h.size(1)
        target, source = edges
        e = self.leakyrelu(h @ self.a[:half])[target] + (h @ self.a[half:])[source]
        largest = torch.full((N, 1), -torch.inf).scatter_reduce(0, target[:, None], e, "amax")
        p = (e - largest.detach()[target]).exp()
        total = torch.zeros(N, 1).index_add(0, target, p)
        return torch.zeros(N, half).index_add(0, target, p / total[target] * h[source])


results = {}
for layer in (GraphConvolution, Messages, Attention):
    net = nn.ModuleList([layer(11, 16), layer(16, 3)])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)

    def forward(net=net):
        x = F.dropout(F.elu(net[0](features)), 0.3, training=net.training)
        return F.log_softmax(net[1](x), dim=1)

    for _ in range(60):
        net.train()
        optimizer.zero_grad()
        loss = F.nll_loss(forward()[train], group[train])
        loss.backward()
        optimizer.step()
    net.eval()
    results[layer.__name__] = (forward().argmax(1) == group)[~train].float().mean().item()
assert min(results.values()) > 0.6, results
print("learned", results)
