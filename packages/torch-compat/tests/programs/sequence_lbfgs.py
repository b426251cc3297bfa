"""Two LSTM cells learn to continue sine waves, with LBFGS in double precision."""

import math

import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 16)
        self.lstm2 = nn.LSTMCell(16, 16)
        self.linear = nn.Linear(16, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 16, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 16, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 16, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 16, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


torch.manual_seed(0)
times = torch.arange(40, dtype=torch.double)
waves = torch.stack([torch.sin(times / 4 + phase) for phase in torch.linspace(0, math.pi, 8).tolist()])
seq = Sequence()
seq.double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8)
losses = []
for _step in range(4):

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
with torch.no_grad():
    pred = seq(waves[:, :-1], future=5)
assert pred.shape == (8, 44)
assert losses[-1] < 0.05 * losses[0], losses
print("learned", losses[0], losses[-1])
