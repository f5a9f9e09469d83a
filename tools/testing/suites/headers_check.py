#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
headers_check.py - hold captured packets against what was asked for

usage: headers_check.py OUT ENDS

OUT.pcap has the packets, OUT.txt a line for each that the specification wants
(selftests/headers.c).  ENDS is what the program does not know of the two hosts:

    a.mac=... b.mac=... a.hops=N b.hops=N vlan=N

hops: hop limit of the route to the peer, vlan: 0 for none.

Each packet is taken apart twice, here and by tshark, and both must say what is
wanted.  Checksums are computed here, and nothing of the driver is used.  The report
is KTAP: one case for each family of packets and row of fields.  What tshark has no
words for is said in a note.

Spec: IBA Vol 1, 5.2, 7.8.1 (ICRC), 9.2, 9.3; Annex A17 (RoCEv2), A19 (ATOMIC
WRITE); RFC 768, 791, 2474, 3168, 6936, 8200; include/rdma/ib_verbs.h for the UDP
source port.
"""
import ipaddress
import subprocess
import sys
import zlib

PORT = 4791
ETHERTYPE = {4: 0x0800, 6: 0x86dd}
VLAN_TYPE = 0x8100
UDP = 17

# IBA table 38: the operations, without the three bits of the service
OPERATIONS = {
    'rc': set(range(0x00, 0x15)) | {0x16, 0x17, 0x1d},
    'uc': set(range(0x00, 0x0c)),
    'ud': {0x04, 0x05},
}
SERVICES = {'rc': 0x00, 'uc': 0x20, 'ud': 0x60}
READ_REQUEST, ACK, ATOMIC_ACK, ATOMIC_WRITE = 0x0c, 0x11, 0x12, 0x1d
ATOMICS = (0x13, 0x14)
READ_RESPONSES = (0x0d, 0x0e, 0x0f, 0x10)
# whose packets are all of these, in a message that has the first
WITH_RETH = (0x06, 0x0a, 0x0b, READ_REQUEST, ATOMIC_WRITE)
WITH_AETH = (0x0d, 0x0f, 0x10, ACK, ATOMIC_ACK)
WITH_IMM = (0x03, 0x05, 0x09, 0x0b)
WITH_IETH = (0x16, 0x17)
# not the last packet of a request: may ask for an acknowledge
INSIDE = (0x00, 0x01, 0x06, 0x07)
# families that carry bytes of any length
ANY_LENGTH = ('rc-send', 'rc-send-imm', 'rc-send-inv', 'rc-write',
              'rc-write-imm', 'rc-read-response', 'uc-send', 'uc-send-imm',
              'uc-write', 'uc-write-imm', 'ud-send', 'ud-send-imm',
              'ud-multicast')


def number(data, at, size):
    return int.from_bytes(data[at:at + size], 'big')


def checksum(data):
    """RFC 1071: 0 if the sum over a header with its checksum is right."""
    if len(data) % 2:
        data += b'\0'
    total = sum(number(data, i, 2) for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def source_port(flow, lqpn, rqpn):
    """What ib_verbs.h says that all RoCEv2 drivers use."""
    if not flow:
        product = lqpn * rqpn
        product ^= product >> 20
        product ^= product >> 40
        flow = product & 0xfffff
    return 0xc000 | ((flow & 0x3fff) ^ (flow >> 14))


def icrc(ip, udp, bth_on):
    """
    IBA 7.8.1, A17.3.3: CRC32 of Ethernet over 8 bytes of ones for the LRH that
    is not there and all from the IP header on, with ones for what may change.
    """
    ip, udp, bth_on = bytearray(ip), bytearray(udp), bytearray(bth_on)
    if ip[0] >> 4 == 4:
        ip[1] = 0xff                    # type of service
        ip[8] = 0xff                    # time to live
        ip[10:12] = b'\xff\xff'         # checksum
    else:
        ip[0] |= 0x0f                   # traffic class, flow label
        ip[1:4] = b'\xff\xff\xff'
        ip[7] = 0xff                    # hop limit
    udp[6:8] = b'\xff\xff'              # checksum
    bth_on[4] = 0xff                    # FECN, BECN, reserved
    crc = zlib.crc32(b'\xff' * 8 + bytes(ip) + bytes(udp) + bytes(bth_on))
    return crc.to_bytes(4, 'little').hex()


# --- what is there -----------------------------------------------------------


def read_pcap(name):
    with open(name, 'rb') as f:
        data = f.read()
    order = {b'\xd4\xc3\xb2\xa1': 'little', b'\xa1\xb2\xc3\xd4': 'big'}[data[:4]]
    frames, at = [], 24
    while at < len(data):
        size = int.from_bytes(data[at + 8:at + 12], order)
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def take_ip(frame, at, got):
    """IP header at AT: fields into GOT, returns the offset of the UDP header."""
    version = frame[at] >> 4
    got['ip.version'] = version
    if version == 4:
        size = (frame[at] & 15) * 4
        got['ip.header-length'] = size
        got['ip.dscp'] = frame[at + 1] >> 2
        got['ip.ecn'] = frame[at + 1] & 3
        got['ip.length'] = number(frame, at + 2, 2)
        got['ip.fragment'] = number(frame, at + 6, 2)
        got['ip.hop-limit'] = frame[at + 8]
        got['ip.protocol'] = frame[at + 9]
        got['ip.checksum'] = checksum(frame[at:at + size])
        got['ip.source'] = str(ipaddress.ip_address(frame[at + 12:at + 16]))
        got['ip.destination'] = str(ipaddress.ip_address(frame[at + 16:at + 20]))
        pseudo = frame[at + 12:at + 20]
    else:
        size = 40
        word = number(frame, at, 4)
        got['ip.dscp'] = word >> 22 & 0x3f
        got['ip.ecn'] = word >> 20 & 3
        got['ip.flow-label'] = word & 0xfffff
        got['ip.length'] = number(frame, at + 4, 2)
        got['ip.protocol'] = frame[at + 6]
        got['ip.hop-limit'] = frame[at + 7]
        got['ip.source'] = str(ipaddress.ip_address(frame[at + 8:at + 24]))
        got['ip.destination'] = str(ipaddress.ip_address(frame[at + 24:at + 40]))
        pseudo = frame[at + 8:at + 40]
    udp = at + size
    got['udp.source'] = number(frame, udp, 2)
    got['udp.destination'] = number(frame, udp + 2, 2)
    got['udp.length'] = number(frame, udp + 4, 2)
    # 0: none, which RoCEv2 may send since the ICRC is one (RFC 6936 for IPv6)
    if number(frame, udp + 6, 2):
        size = len(frame) - udp
        pseudo += size.to_bytes(4, 'big') + UDP.to_bytes(4, 'big')
        got['udp.checksum'] = checksum(pseudo + frame[udp:])
    else:
        got['udp.checksum'] = 0
    return udp


def take_bth(frame, at, got):
    """BTH and what follows, as far as the opcode says that it is there."""
    op = frame[at]
    operation = op & 0x1f
    got['bth.opcode'] = op
    got['bth.solicited'] = frame[at + 1] >> 7
    got['bth.migration'] = frame[at + 1] >> 6 & 1
    got['bth.pad'] = pad = frame[at + 1] >> 4 & 3
    got['bth.version'] = frame[at + 1] & 15
    got['bth.pkey'] = number(frame, at + 2, 2)
    got['bth.reserved'] = (frame[at + 4], frame[at + 8] & 0x7f)
    got['bth.qpn'] = number(frame, at + 5, 3)
    got['bth.ack-request'] = frame[at + 8] >> 7
    got['bth.psn'] = number(frame, at + 9, 3)
    at += 12
    if op >> 5 == SERVICES['ud'] >> 5:
        got['deth.qkey'] = number(frame, at, 4)
        got['deth.reserved'] = frame[at + 4]
        got['deth.source'] = number(frame, at + 5, 3)
        at += 8
    if operation in WITH_RETH:
        got['reth.va'] = number(frame, at, 8)
        got['reth.rkey'] = number(frame, at + 8, 4)
        got['reth.length'] = number(frame, at + 12, 4)
        at += 16
    if operation in ATOMICS:
        got['atomic.va'] = number(frame, at, 8)
        got['atomic.rkey'] = number(frame, at + 8, 4)
        got['atomic.swap'] = number(frame, at + 12, 8)
        got['atomic.compare'] = number(frame, at + 20, 8)
        at += 28
    if operation in WITH_AETH:
        got['aeth.syndrome'] = frame[at]
        got['aeth.msn'] = number(frame, at + 1, 3)
        at += 4
    if operation == ATOMIC_ACK:
        got['atomicack.old'] = number(frame, at, 8)
        at += 8
    if operation in WITH_IMM:
        got['immediate'] = number(frame, at, 4)
        at += 4
    if operation in WITH_IETH:
        got['invalidate'] = number(frame, at, 4)
        at += 4
    got['payload'] = frame[at:len(frame) - 4 - pad].hex()
    got['padding'] = frame[len(frame) - 4 - pad:-4].hex()


def take_apart(frame):
    got = {
        'eth.destination': frame[0:6].hex(':'),
        'eth.source': frame[6:12].hex(':'),
    }
    at, got['eth.vlan'], got['eth.priority'] = 14, 0, 0
    if number(frame, 12, 2) == VLAN_TYPE:
        got['eth.vlan'] = number(frame, 14, 2) & 0xfff
        # with the drop eligible bit
        got['eth.priority'] = frame[14] >> 4
        at = 18
    got['eth.type'] = number(frame, at - 2, 2)
    net = at
    udp = take_ip(frame, net, got)
    take_bth(frame, udp + 8, got)
    got['icrc'] = frame[-4:].hex()
    # the rest follows from the packet itself
    got['own-icrc'] = icrc(frame[net:udp], frame[udp:udp + 8], frame[udp + 8:-4])
    got['own-length'] = len(frame) - net
    got['own-udp-length'] = len(frame) - udp
    return got


# --- what is wanted ----------------------------------------------------------


class Line:
    """A line of the program."""

    def __init__(self, text):
        words = text.split()
        self.family = words[0]
        self.words = dict(word.split('=', 1) for word in words[1:])
        self.maybe = 'maybe' in self.words

    def number(self, name):
        return int(self.words[name])

    def __getitem__(self, name):
        return self.words[name]


def group_mac(address):
    low = address.packed[-4:]
    if address.version == 4:
        return bytes([1, 0, 0x5e, low[1] & 0x7f, low[2], low[3]]).hex(':')
    return (b'\x33\x33' + low).hex(':')


def either(text):
    values = {int(value) for value in text.split('|')}
    return values if len(values) > 1 else values.pop()


def is_right(value, want):
    return value in want if isinstance(want, set) else value == want


def ack_request(op):
    """None: as the requester likes."""
    if op >> 5 != SERVICES['rc']:
        return 0
    if op in READ_RESPONSES or op in (ACK, ATOMIC_ACK):
        return 0
    return None if op in INSIDE else 1


def wanted(line, ends, got):
    """
    All fields of the packet, a set where more than one value is right; GOT gives
    what its own length says.  What is not in the result is not looked at.
    """
    source = ipaddress.ip_address(line['src'])
    destination = ipaddress.ip_address(line['dst'])
    group = destination.is_multicast
    me = line['from']
    peer = 'b' if me == 'a' else 'a'
    tclass, flow = line.number('tclass'), line.number('flow')
    op, operation = line.number('op'), line.number('op') & 0x1f
    pad = -len(line['data']) // 2 % 4
    want = {
        'eth.destination': group_mac(destination) if group else ends[peer + '.mac'],
        'eth.source': ends[me + '.mac'],
        'eth.vlan': int(ends['vlan']),
        'eth.priority': 0,              # nobody has asked for another
        'eth.type': ETHERTYPE[source.version],
        'ip.version': source.version,
        'ip.dscp': tclass >> 2,
        'ip.ecn': tclass & 3,
        # the core of RDMA puts the route's limit into a unicast AH
        'ip.hop-limit': line.number('hops') if group else int(ends[me + '.hops']),
        'ip.protocol': UDP,
        'ip.source': str(source),
        'ip.destination': str(destination),
        'udp.source': source_port(flow, line.number('lqpn'), line.number('qpn')),
        'udp.destination': PORT,
        'udp.length': got['own-udp-length'],
        'udp.checksum': 0,
        'bth.opcode': op,
        'bth.solicited': line.number('se'),
        'bth.migration': 1,
        'bth.pad': pad,
        'bth.version': 0,
        'bth.pkey': 0xffff,
        'bth.reserved': (0, 0),
        'bth.qpn': line.number('qpn'),
        'bth.psn': line.number('psn'),
        'payload': line['data'],
        'padding': '00' * pad,
        'icrc': got['own-icrc'],
    }
    if source.version == 4:
        want['ip.header-length'] = 20
        want['ip.length'] = got['own-length']
        want['ip.fragment'] = 0x4000            # don't fragment, and it is none
        want['ip.checksum'] = 0                 # of the sum with the checksum
    else:
        want['ip.length'] = got['own-length'] - 40
        want['ip.flow-label'] = flow
    if ack_request(op) is not None:
        want['bth.ack-request'] = ack_request(op)
    if op >> 5 == SERVICES['ud'] >> 5:
        want['deth.qkey'] = line.number('deth.qkey')
        want['deth.reserved'] = 0
        want['deth.source'] = line.number('deth.source')
    for prefix, operations in (('reth.', WITH_RETH), ('aeth.', WITH_AETH),
                               ('atomic.', ATOMICS)):
        if operation in operations:
            want.update((name, either(value)) for name, value in line.words.items()
                        if name.startswith(prefix))
    if operation == ATOMIC_ACK:
        want['atomicack.old'] = line.number('old')
    if operation in WITH_IMM:
        want['immediate'] = line.number('imm')
    if operation in WITH_IETH:
        want['invalidate'] = line.number('ieth')
    return want


# --- what tshark says --------------------------------------------------------


def integer(text):
    if text in ('True', 'False'):
        return int(text == 'True')
    return int(text, 0)


def hexadecimal(text):
    return int(text.replace(':', ''), 16)


def plain(text):
    return text.replace(':', '')


def address(text):
    return str(ipaddress.ip_address(text))


# Our row, tshark's field (the first that is there), and how to read it.
TSHARK = [
    ('eth.destination', ['eth.dst'], str),
    ('eth.source', ['eth.src'], str),
    ('eth.vlan', ['vlan.id'], integer),
    ('eth.type', ['vlan.etype', 'eth.type'], integer),
    ('ip.version', ['ip.version', 'ipv6.version'], integer),
    ('ip.header-length', ['ip.hdr_len'], integer),
    ('ip.dscp', ['ip.dsfield.dscp', 'ipv6.tclass.dscp'], integer),
    ('ip.ecn', ['ip.dsfield.ecn', 'ipv6.tclass.ecn'], integer),
    ('ip.flow-label', ['ipv6.flow'], integer),
    ('ip.length', ['ip.len', 'ipv6.plen'], integer),
    # "good" is 1
    ('ip.checksum', ['ip.checksum.status'], lambda text: integer(text) - 1),
    ('ip.hop-limit', ['ip.ttl', 'ipv6.hlim'], integer),
    ('ip.protocol', ['ip.proto', 'ipv6.nxt'], integer),
    ('ip.source', ['ip.src', 'ipv6.src'], address),
    ('ip.destination', ['ip.dst', 'ipv6.dst'], address),
    ('udp.source', ['udp.srcport'], integer),
    ('udp.destination', ['udp.dstport'], integer),
    ('udp.length', ['udp.length'], integer),
    ('bth.opcode', ['infiniband.bth.opcode'], integer),
    ('bth.solicited', ['infiniband.bth.se'], integer),
    ('bth.migration', ['infiniband.bth.m'], integer),
    ('bth.pad', ['infiniband.bth.padcnt'], integer),
    ('bth.version', ['infiniband.bth.tver'], integer),
    ('bth.pkey', ['infiniband.bth.p_key'], integer),
    ('bth.qpn', ['infiniband.bth.destqp'], integer),
    ('bth.ack-request', ['infiniband.bth.a'], integer),
    ('bth.psn', ['infiniband.bth.psn'], integer),
    ('deth.qkey', ['infiniband.deth.q_key'], integer),
    ('deth.source', ['infiniband.deth.srcqp'], integer),
    ('reth.va', ['infiniband.reth.va'], integer),
    ('reth.rkey', ['infiniband.reth.r_key'], integer),
    ('reth.length', ['infiniband.reth.dmalen'], integer),
    ('atomic.va', ['infiniband.reth.va'], integer),
    ('atomic.rkey', ['infiniband.reth.r_key'], integer),
    ('atomic.swap', ['infiniband.atomiceth.swapdt'], integer),
    ('atomic.compare', ['infiniband.atomiceth.cmpdt'], integer),
    ('aeth.syndrome', ['infiniband.aeth.syndrome'], integer),
    ('aeth.msn', ['infiniband.aeth.msn'], integer),
    ('atomicack.old', ['infiniband.atomicacketh.origremdt'], integer),
    ('immediate', ['infiniband.immdt'], hexadecimal),
    ('invalidate', ['infiniband.ieth'], hexadecimal),
    ('payload', ['infiniband.payload', 'data.data'], plain),
    ('icrc', ['infiniband.invariant.crc'],
     lambda text: integer(text).to_bytes(4, 'big').hex()),
]
# dissectors that guess what a payload is, and take it away from us
GUESSERS = ('rpcordma', 'ipoib', 'infiniband.eoib', 'infiniband_sdp')
# tshark has no field for these, or does not say what we ask
NOT_TSHARK = {
    'eth.priority': 'two fields',
    'ip.fragment': 'three fields',
    'udp.checksum': '"none" and "good" are both right',
    'bth.reserved': 'no field for all of it',
    'deth.reserved': 'no field',
    'padding': 'no field',
}


def run_tshark(pcap, notes):
    known = subprocess.run(['tshark', '-G', 'fields'], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, check=True, text=True)
    known = {line.split('\t')[2] for line in known.stdout.splitlines()
             if line.startswith('F\t')}
    fields = []
    for _, names, _ in TSHARK:
        for name in names:
            if name not in known:
                notes.append('this tshark has no field %s' % name)
            elif name not in fields:
                fields.append(name)
    command = ['tshark', '-n', '-r', pcap, '-o', 'ip.check_checksum:TRUE',
               '-T', 'fields', '-E', 'occurrence=f']
    for name in GUESSERS:
        command += ['--disable-protocol', name]
    for name in fields:
        command += ['-e', name]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, check=False)
    if run.returncode:
        sys.exit('tshark: %d %s' % (run.returncode, run.stderr))
    packets = []
    for text in run.stdout.split('\n')[:-1]:
        says = dict(zip(fields, text.split('\t')))
        got = {}
        for row, names, convert in TSHARK:
            for name in names:
                if says.get(name):
                    got[row] = convert(says[name])
                    break
        # the padding counts as data there
        if got.get('payload') and got.get('bth.pad'):
            got['payload'] = got['payload'][:-2 * got['bth.pad']]
        packets.append(got)
    return packets


# --- comparing ---------------------------------------------------------------


class Report:
    """KTAP, one case for each family and row."""

    def __init__(self):
        self.results = {}
        self.blind = {}

    def result(self, name, good, note=''):
        notes = self.results.setdefault(name, [])
        if not good:
            notes.append(note)

    def look(self, frame, line, row, want, got, says):
        name = '%s.%s' % (line.family, row)
        self.result(name, is_right(got, want), 'frame %d: %s, not %s' % (
            frame, short(got), short(want)))
        if row in NOT_TSHARK or row == 'eth.vlan' and not want:
            return
        # empty bytes are no field
        if says is None and want != '':
            self.blind.setdefault((row, line.family), 0)
            self.blind[row, line.family] += 1
        elif says is not None:
            self.result(name, is_right(says, want),
                        'frame %d: tshark says %s, not %s' % (
                            frame, short(says), short(want)))

    def print(self):
        print('KTAP version 1')
        for (row, family), count in sorted(self.blind.items()):
            print('# tshark does not decode %s in %d packets of %s: decoded here '
                  'only' % (row, count, family))
        good = True
        for i, (name, notes) in enumerate(self.results.items()):
            for note in notes[:4]:
                print('# ' + note)
            if len(notes) > 4:
                print('# and %d more' % (len(notes) - 4))
            print('%s %d %s' % ('not ok' if notes else 'ok', i + 1, name))
            good = good and not notes
        print('1..%d' % len(self.results))
        return good


def short(value):
    if isinstance(value, int):
        return '%d (%#x)' % (value, value)
    text = str(value)
    return text if len(text) < 60 else '%s... of %d' % (text[:60], len(text))


def pair_up(lines, packets, report):
    """
    The lines of each direction and QP with its packets, in order.  A packet that
    may be there is skipped if another one is.
    """
    pairs, flows = [], {}
    for line in lines:
        flows.setdefault((line['from'], line.number('qpn')), ([], []))[0].append(line)
    for p in packets:
        flows.setdefault((p['end'], p['got']['bth.qpn']), ([], []))[1].append(p)
    for todo, there in flows.values():
        for p in there:
            while todo and todo[0].maybe and (
                    p['got']['bth.opcode'] != todo[0].number('op') or
                    p['got']['bth.psn'] != todo[0].number('psn')):
                todo.pop(0)
            if not todo:
                report.result('all.expected', False,
                              'frame %d: opcode %#x, not asked for' % (
                                  p['frame'], p['got']['bth.opcode']))
                continue
            pairs.append((todo.pop(0), p))
        for line in todo:
            report.result(line.family + '.sent', line.maybe,
                          'opcode %#x psn %d was not sent' % (
                              line.number('op'), line.number('psn')))
    return pairs


def main():
    out, ends = sys.argv[1], dict(word.split('=') for word in sys.argv[2].split())
    report, notes = Report(), []
    with open(out + '.txt', encoding='ascii') as f:
        lines = [Line(text) for text in f]
    frames = read_pcap(out + '.pcap')
    decoded = run_tshark(out + '.pcap', notes)
    report.result('all.tshark', len(decoded) == len(frames),
                  'tshark sees %d of %d packets' % (len(decoded), len(frames)))
    packets = []
    for i, (frame, says) in enumerate(zip(frames, decoded)):
        got = take_apart(frame)
        end = {ends['a.mac']: 'a', ends['b.mac']: 'b'}.get(got['eth.source'])
        report.result('all.from', end is not None,
                      'frame %d is from %s' % (i + 1, got['eth.source']))
        packets.append({'frame': i + 1, 'end': end, 'got': got, 'says': says})
    report.result('all.expected', True)
    seen, sizes = set(), {}
    for line, p in pair_up(lines, packets, report):
        want = wanted(line, ends, p['got'])
        report.result(line.family + '.sent', True)
        seen.add(p['got']['bth.opcode'])
        sizes.setdefault(line.family, set()).add(len(p['got']['payload']) // 2 % 4)
        for row, value in want.items():
            report.look(p['frame'], line, row, value, p['got'].get(row),
                        p['says'].get(row))
    # the test itself: it has seen everything that it is for
    for service, operations in OPERATIONS.items():
        for operation in sorted(operations):
            op = SERVICES[service] | operation
            report.result('all.opcodes', op in seen, 'no packet of opcode %#x' % op)
    for family in ANY_LENGTH:
        report.result('all.lengths', sizes.get(family) == {0, 1, 2, 3},
                      '%s: lengths mod 4 are %s' % (family, sizes.get(family)))
    for row, _, _ in TSHARK:
        blind = row != 'eth.vlan' and not any(row in p['says'] for p in packets)
        if blind and any(name.endswith('.' + row) for name in report.results):
            report.result('all.tshark', False, 'tshark never decodes ' + row)
    for note in notes:
        print('# ' + note)
    return 0 if report.print() else 1


if __name__ == '__main__':
    sys.exit(main())
