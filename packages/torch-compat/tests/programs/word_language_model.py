"""A word language model: an LSTM over a corpus cut into columns, truncated backpropagation,
clipping by hand of the learning rate.
"""

import math

import torch
import torch.nn as nn

RULES = {0: [1, 2], 1: [3], 2: [3], 3: [4, 5], 4: [0], 5: [6], 6: [0]}


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.1, tie_weights=False):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            self.rnn = nn.RNN(
                ninp, nhid, nlayers, nonlinearity={"RNN_TANH": "tanh", "RNN_RELU": "relu"}[rnn_type], dropout=dropout
            )
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.rnn_type, self.nhid, self.nlayers, self.ntoken = rnn_type, nhid, nlayers, ntoken

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        self.rnn.flatten_parameters()
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


torch.manual_seed(1111)
dictionary = Dictionary()
words, state = [], 0
for _ in range(3000):
    words.append(f"word{state}")
    choices = RULES[state]
    state = choices[torch.randint(len(choices), (1,)).item()]
ids = torch.tensor([dictionary.add_word(word) for word in words], dtype=torch.int64)
train_data, val_data = batchify(ids[:2500], 10), batchify(ids[2500:], 10)
criterion = nn.NLLLoss()
for kind in ("LSTM", "GRU", "RNN_TANH"):
    model = RNNModel(kind, len(dictionary.idx2word), 16, 16, 2, tie_weights=True)
    lr, best = 20.0, None

    def evaluate(source, model=model):
        model.eval()
        total_loss, hidden = 0.0, model.init_hidden(10)
        with torch.no_grad():
            for i in range(0, source.size(0) - 1, 20):
                data, targets = get_batch(source, i, 20)
                output, hidden = model(data, hidden)
                hidden = repackage_hidden(hidden)
                total_loss += len(data) * criterion(output, targets).item()
        return total_loss / (len(source) - 1)

    for _epoch in range(6):
        model.train()
        hidden = model.init_hidden(10)
        for i in range(0, train_data.size(0) - 1, 20):
            data, targets = get_batch(train_data, i, 20)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
        val_loss = evaluate(val_data)
        if best is None or val_loss < best:
            best = val_loss
        else:
            lr /= 4.0
    # Where there is a choice there are two; guessing among all costs log 7.
    assert best < 1.5 < math.log(7), (kind, best)
    input, hidden = torch.randint(7, (1, 1), dtype=torch.long), model.init_hidden(1)
    with torch.no_grad():
        for _ in range(5):
            output, hidden = model(input, hidden)
            input.fill_(torch.multinomial(output.squeeze().div(0.8).exp(), 1)[0])
    print("learned", kind, f"{math.exp(best):.2f}")
