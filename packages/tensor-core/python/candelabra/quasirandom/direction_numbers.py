"""The initial direction numbers of Sobol sequences by Joe and Kuo ("Constructing Sobol sequences
with better two-dimensional projections", 2008; new-joe-kuo-6.21201), for the first 1111 dimensions.

A dimension has a primitive polynomial over GF(2) and as many odd numbers m_1, m_2, … as its degree,
with m_i < 2^i. The polynomials are all, in ascending order. Of each m_i the lowest bit, 1, is left
out; the other i - 1 bits are stored one after another.
"""

from __future__ import annotations

import base64
import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSIONS = 1111
BITS = 30

_PACKED = r"""
1Er>r5;qAzs`_y-t}1SfkI0Qt>EAu`ZAX+RekCw1rdUVqA2zAigb{5>z-6fu*-
`a^?Xiv|qD5+<;eqc>^Vk#{%HLr6{`&_@tC;+>>qzjmpq7UpcnY!vW-
^uId;zlD<;XdDZ|)7D9t=mea@Y@%G>ZE7YN@IwtQ=j|_cee`5P@(mg4Kx6Gs{N{eY7o>96Yb((^7-q?^8;2L-yS76#CD`fRg!6D?n7W&zE#-
aHmiT4H^itcYyu&f@+{Fklz^p`9VJ0`cWYDKRa%pl!s(d>)Uz=jDcp=f#(B=bSiqj3a)*BjHW$Z#bh9Gd?iWvVR%BP&_=kaJ1;vd3um1iW34}m
mR8WV5`Rj_6Mx7&4e&hY#5w=~lE~its$+<EvZ=xAMdA{6-
Kb3+O0kfEclwz_UNwU@nPQu>EjYerYv6yUN?1C!%_Y=J%0)==w{n)u?>{szqp|YYR?2h-
c<r7$4G|)MTV)?8pHi9sN99bhX*0OsQ^^#;iD%+RyzwUWg9V@N%1+PZ6WB!r@7(u-Ru?iEIcmV_zcOb+mGa!T+D<%-
htBY@m>Qa8EuO?|?VOB!W?KS~++%rYT<WOeb!)p$rczagDmimo4vph1VL2Dpl%HUy8ESG9`g;V;ez^1y5PrF)a_+$-
dU!8$Btmeyf;&*G(@$@wb@1mb48eCnx%NSVGX4#<v1t9>3v@hT9q`3ipz|hVZ7;J)S)Vx5!W$`}27noXmUm}f;~1*8wpdY7`dDw}r`2z0-
G(#ZZ+^(ToZk90s6;Zy<t$)NkJFbd1^JTFAEcHqYZ3%zix-
>a%e&!M3EtJ@|8+H`^_FAmYx1?x2te9QrD>*LbL4N=3Z~9pk@(y`dgU**VH1uR^Vz*I-
opu@&Kql`?!+5|A7sn3)W}5_Vur~UnGL{)YcK3=+6W1^HJhW=4u{JHHiI8iKBC*J;IX1*#v{-{7J0yGoM%C5fX^%Uy0)_u{zbj-
4~*F0=obi>F&xU!=-5ogJsZdP8qS_d$Tmti#q`&6A6u(FuH0#P-ve!CFAHO6`-{+!1!~<rsE%@{mzB>9gvPq7AApsF+Yq?Y%DXJFNfG-
?HZo~{%C7<OYG@aW*|Aj(M~eva5NjFMZ2*$Y?PNtK{Ws1H#8lh?Cs%LdZ)(3k31#E~9?SYT<SLK-29EXrhG4-E-
=U04B$a&MRFoicKY7>4EX9Fi{n^wqH;ma6XG*i+ix^fHR7M_k>4*ggrr2m$R0lUTZ(UI=y;nCV`2*C%i&CvpdI`w}6j5RaT5|$UaiJVyy7*~bJ
7FpAEHBe%uQ&E)QIRi`)XIEUDm4bEA33{V=t%)#yu92EG`^si1#6Na-
)RoD*k+K87iFqoD)^XgO&$Y`e=OBwydzt61C2C7grXq#V|$g1>sMnKb~mM)@Rh%^kVKu3w@Jrg8S8#OY$DmaHH;=)KCgajRQvAhN2>vu;4h2Gz
K0_g`jzj;d6?5D_A!$!RsQDUliK*V&<d_7N_FhhueM6EKvu=J3&ED^ibNv;&dl_iX2(!Ow_W})=|B1>X7ttb{pYb)+*B#uEXH%+Ev6P_W#j==$
Y23bP(W%SCJj>QmG?_+L`~8swlR<_0mCTmttaoa<6QASnt(`AFJ$Du5`nzPhU_|EitF@e-E8u3`49JUlyxu$rqZ*9bpPkZQ-
w@&A<jcPW>+Su5{@t)CR3fBKOtheRIID(p$wW3=Jk3p(UxWf11Dy1E*zONp@sFb;78P}SKoj69_)1DD7ZgVo~Nr27zZDV;ZKbzqBRbh9uXRZ5U
%kj?KnihKl??_Jo0`M%gK3AUhiho@}u4vbfxlx6JdtIqP~=8G2Qy3w48Y+0(RM|H$AgpoffECzABv!G?X7yUg>Q`6G90usmvSDy$KP@pU_gZ7l
bfqa}filO5aB(6q-
XS1Ob7d>IUpP7)5in1WE=DK_<ScZ05dF<=#DPE1P}WAh+e=qK?>ss)G*UuLu&2Au2@y&g38giMBShSz4|w$LpI4?Q33v+ka&<_Zp*Ya;B+gDk4
M0kyj|3{f$v;J>CF*Bob9k*EhAgNeu1iN3dbd((nez*2UeY#*+mtLb;yp`_(`<@Ylx&_|T#H1v80;u=_cOcgOD!ayhB<DKxT^ZU|3^8IF${ew}
Kmxx;Fw?w&2$Pr3TQ5ez1S-RDbKFfDlIGgWY0^ANt$RoB_z=Wc6iv*eX0TCg!k-
mtOtQbI1*%`m4iCgb5U%iuGzW)2v#*csYVkm$Kd&Y)4r%Nj9zJ0`I3+A*B#PqOmMobgG9eC0yNW}11oW^<|6iMh9MJX&`X-
p|)o@9ZLC`xc!*ICuF7;sdT)h$-`rA&pr_Jo5P!Ddm77bxg_dsR!7opS2e*@2Vt(OkXyIQ$gj4ZiVHZG1F8UT@|cxITPjyysvw-
5|!q;eGDHycFIMBl$|J7I5cHAFFFr(yi7OGgSd0m7bX|F*caA8Zf{r>a2+jAvm?(bcJ?}z7z%wSKU~F2`v*LQ!06}dY>T!tyTxtZu23TAc^~zp
)&`?qyV4sgO=66gcu7nINLJ_n6fq+^*T4RB4G#EPd4~88Bjn_8PXlRkU`gSoE#}{zg=YC|T6Oh%nZHPh(KSyV0#nd$F}FS;CN?!J3GIYh8%c}~
c$9dcF<1Om*R?s`%L=MQLG(i5`vd7Ib_Utm&k2AX!A+1~CdOIzkQGFQMdbzfyg=1}yU4G&WYnVnAcK4lSC#HXNSZ4107Xfc;!~d;+6$5PXF>?V
f;RD22T3baKlakrpHq980OK3$T0Ab1B!)u;aIf`aDv2fjfdfRYFfH|`YcXh!ncPIZ@_KOJyr-HOW%~BIcWXCI>c_tObzxlJ9H@|)v-
o&j6Ln~A=QQ!w)vcvcNvUAv#BXWRP@=ITa38tL%1|f@-
2B!s?F~~tMoyB2Js_`xy=Q6E(A4shiHUZSQofA+i>x2{H1#20le^Vs4i88a`l3Xih>=`E+X2X5s7tv;E%{)z$hwwi2IMspwu+TTsq|h*lLld7!
1jl^#WUKTMOL@Afs3Kh2OH@}yi5pvg>8=+<37}v3~0**Ni@xpB+2;{wJ1nPzQA|9wn{Y7u~CVip#!t+YaX9L0%Le%>91AeJ}}rBc}l*`qRzK3Q
ad$DV-nw1pG(;J0DhskYSoNjeW~Ax`LdY`KJqAKc3UH;;)#0;Yg5`6{$W!n_GBmiqN3mSp(FBVXZW1VCNQTqwQ-ty{ZJl>`HSw*Zl1<Rl-
8OZofa|Ky@YaIYpwL&H=PObB%c2A3^9x@QmugNlPtyDnC!FAI9nmodiSK0=T&nu)OdECNESRD7l0PLv6yOi<|x#Q%IG=vZq#3ZSBTWx<Dt?$S{
VhJ{_4eT_2&h$mo;oxU2V<g_MFC{^RFenS!bhJbbWZ9p*iI{a*c!dAgA8z<&DLKWDPCb_gAe?Xx@%)!mIoz;aM5nlE3)%`ho4{PqwT9gD&vK9U
HRm8kIL9J}#AO-LPc3@h|Gyo!l8~SLMY}yv*@4qCXh7YgrMb7nH-
4GUv_u=iFzVtY_j5J?@r=uGG5ylJjuZ=e&REGU{SHWjbd6Objc2l<AaA^RoVb<honxEx~EIbm)<nJb0Ilo}h&j%yGp(F$@hcuc7_Z3F!6WT@B%
#4TXUz-jT`<*-
6h9;t=L?r6u(*f){Kye}RFIooBX6kv*7o$^^B!Vr;y{Z`X9{Un&yLuo{NPh37!s5}>Et1s#dTwKkk0703xd=bM4_JTl2jKTyhOP{{GXRuHa34!
H%}04fHS44Z;#Y0*T0M~NX_@qEtF(}h%2O{3H3iUlg8D>4fK)tg&j-
S3XF_lcvYHEgCFo=TfO&}w<Ls0+*%&7S<o{k8~*c!CN&bd$WUP{>qhVscbs0>r1(oJHeC2m!-
0U?fxc7Kl(OYTb(y2Zbj!NiDV|*Tnt6^%`qof_YRd+-
^IdT5FIPH5fW>Bd`SUJnoh)bcY{6Vh%BLP}8(5*4OEGr0SSxL3ZH0{IqOAcuS|L;u#*I{c16qR67LKG=BcM`Mc@X!@SpsClqK$Vmhk=%UU7_R+
E*-Ju!Q~gFjXS6-RprgeOuC-Ft^bG7uHA{R^*v!ys6cG1D-}n-!f)*NUsEQG}gSVv0JLV3EW|o=<%ucGr*m)D3EV9ZA5H-
S;Q);Lh_f=+dKQp1$^Vc>gYCLK><{#85|@tAtyv*8U6QDWa?&NR{mld1VV;MGB+IQF7S)f4jtAjS^mSR!{~d3GsY!hCW_LG>0h2;MeaQNZDU?Q
KZs~GURbjOr>VaGIwb@R>K(I!ER`c-
ZM^)tC_x|W<7=s%4cydG{gykivUsF;d``)G;ow<c67`6B(g8K$qtoR1eh#vV4W>R9SK8`kNx@tzU64Ahbo;Ffb$sM98+-XJPY@Xa~jdpSn-
_nL}%e^$&-qE4<&t+6Bk457++_YM_b>x2aSOYSz-NBeS`Yjz&((t+X?EKp8;b+)GsPlBC6tLF`{ae0^6%wN0)*Ur>Z@Dkr%X3FFRU|zx9+}=XV
z!iA&+LekISAlBFM%y?{CLNG?oj=Ib@|r*aKqa8zc|wiC+vIt<3L@PMrt^aoR)6LMdx5XQ=JRSWZEx)J0h25&5zx7YIcg)#8NEC4#Ww>2&rRf+
lQPoxT&B(X#7)0h=mkdpeex61cnR1K1b+15&0?DAP6`vZkw7YGF)!;PqaaDf;z-
jg<p#EU8|tSc*0fR=S|%j@Jmrl<YVZPj+k<?!Hp08N(~U9i=pGq>;!olwtxT*H$JeHCk%OdV8k9~1Ut=LO>s1qSI4V3NOfsP6K>jBJluDB%VoD
GV6b*OO8K40?-}&e{V9mA?rI223J%qw+Gp>3|CH3`ALh2;RE;sUn{@&P~bIFj>v>7SYEoB5GGsC{W4$X-Sd%=wGv<v$tZbN633Sg?E5qvB-
4cJY?I$>U7k!P_w3J0mWbs&I=vJQV&iqkZR{dI;iYHc5!{T0G>3IbAk;t&K^n|LlTCn{_~ApJaks!X}M(5oO@a8lUOkChT6q4F*Q_yYUB7=<91
3g^k7S?dnNKtwP`__|CYesn;?3mS?w|dJC*BqQ=I#r=_nF!BonYK<e$Wxsfdqp(F*r1o{z|<&f&PymrxJeOgH?ujeKT7_0)d!L;I``d9&^GQAA
NPN_%8FemP9xdJCgzKQez4;ZcVlpfCT}lak_2>RVM5O+wPE*(xUk$tA{r=~)&2p)>MSGx?_<?szR!4J}d_brj>sGwtsV>)mV+Fu=(N;7#lnvXo
~HT(JmUG%$|g&#no>hMUcf`_+^k7lQ1omSm?}NBb7sjgLF*PWc#9Z{8zbSUv4wRw8$kxv7gEa30hDX@P4w%s=TKf-
!wikm#;}jQkycF_ce$D^cC9u#$o5IPDvEklJUcW6_!qjk+;D>fgtPNiHITXX9GQHRe_ZorW+g#Y7QzjgoYeNCH)d*yDCs;wF?ZrF!EG$J00iuq
>$f<tNR+9PYwZ)__1MEUnU95)1VxMe1}{R(6}K$^{9tW@d371dmQ0s_gMPMVo;;xH?$Zu6W~EOMjQ24W89D4XUS5ew9DlSJuZREx+3a$|d+0$2
oAjz}9Njs;P79x!1xfc`|MCy@4F~+4l##r{Ja|cP!_nU8U<2{EkYLQwB(S@Eb>Q;_{PUi-+kLIVb6G6kwJ-7?ph-
)8T_JIlG<ANPb#>PM>3*cE;C<jdry7PgYBL?NXK4OizU<{obx-
;=H~s_IQigZqQX6+5Jw+{sSB=guqya>;!i$!!@`3a>#mN5`W5drsnuB<2`g4$wkFOXgx03@mU*h*>XX*zyxwsXQMsgBF6W|Z+=Fubl)t(;c6M!
z5$o*2m$@mPK8$^m%-~(-
5D_UV_+*r3_x>o4FIYMQL8I!T1Iv}!DEmWtum6{E?u0F(oD@E5mI|41j<F^!ZDAhvjGKj#p1%2)0yPy3&i+g{~4qEJs?}5oAg%1^@9OggFHrcQ
PC^Z-
~eJ|s*pOQtuIXO0`)<?>|R<DNIeqxJ$CnsulnB*L<eV4NMY7Bq>@j#Tr7@arHVKU%9L(T)MMUJ4({HiHsc<Q{VqnCwOx^n8Q&+r!jnSr8J`{T`
2eHi>_#(#=g=d035+u(+-ojTa};6$B!HHLu6TApb#_&y1k|VY?Z%1_pa=a5mxQ=+Xopr3Y-_93wabxF^7l-!w;+1gC0--O-
s_oIfaZ%sI#Z9QPjoPqIi@2Z<*s)vSPbJCc!oHdo4dXF@a%o}_+2E*&H7*+w$dUP8qAlJDOYhlyAC!t8(6b@<|tUHHy5;wL3cPU%Won2baL`F8
wZ#;e-9LxNysGtoKhR|NcO663{gz4{AlLPtA!-
j7xjb?r0N*w4(whIG&agljsWY5i!86HKxiJ4iF@39N6Eqr97(AD*_|kC8$IquRjO`gH4Md!5%u?@I6n^Ln6LTpM5ZEyzDWBbnhJ!f&Ahs|V$#l
RBN()oEiI_w{B~DV>7Fv^s~2{L*=?>vhF;Dh&KML{2|M@Zy$h2zO5iZm{|Lf}X~=k+CPpe09FmEj2#c(EE;!0N7Ps+^(eJ=d9Uy04x5D@M^7;Q
jpD;~Ck^ODLe2!#C=WDru*~&PuI4Q&|yA@uyvh+v1{i3VzY#3XO?W!+7r{4k1#Y4ez;0cim8X)*^f+&Lo_e_WgsU368gdNyS0&D;J9$<3S4NuQ
$tRj~oBi}&Y{WG;Ty6Pj<648Gz;2V<u58{EWf{SyoDbCB2{e9}6@CSn8#;w@{;zqc*>_XwHGzg3<=M`EWj7b@T!-jNM*-VW$S5S-
G!ZY>f%{NnyZlTSPI#%{HvQbItQynJ~pdn-
!M|zh3iGZNS*a%3y97f$S&`vp&Zktz>2)i4Eb2O_}n(gfosvydaF>du`**;SJS<<svEx`}=7|ASv4C|yLRT*G+QeCusTN@F<J4-
4~gjtP754S8<_AVGj^Kw)lTh%(e$U0N97b8l51&lE1o<7!v<^GZqJi=#$u^!pG6V8j6v`=BP&a}HxU4yo`{WrZAj?)rFGq94h!=>K)y(z^f!oS
oOdtZ&qlWL<WXd0(A9b@DNHT3#n-QF5=(UVuHX&__z3n@rISslcf^)UH_o-IP+4vy%_6h*kw!f$!#%LJ_=8WhG6w=?EuRzioqz4BGy-3=yNO-
?uWtLI8g-
1?&QvjAD3CaE0w3QAiG%yE8S^Zg4#f*{Z4QFFg}6S}ST1D6Zh)Q2z0pW|%@1!E50KCkmfQ52)i<!ymLO)hEU*+uxj`Tw2fMZcv11XHSjhv8mPp
d=;3`L}opKkwMdSU8GD6yntyW33^9CrN_T_eIL<c6&?zhZ6Cm*0bAE%c}q+ksx$J8j$O&Q+K6MAjpS+6LR)uf(<6Hi~2TbVf5fALeZvBTz^w*q
>XY^C0e#@IcHA-5g=g^zf-
8E<iuHzbq|U7&YiOhvSVWyizz2CWF0Ii?h=(j$&DVlP|phmXQ`<Sy#u`zcTzQr;r(Jyp0uEQ!cenN_<EXZTW$@CaKLx>&VV^vxk(4x(P;r2xij
<k!DoZyO!LEjj=e=yvOMT#Zpg_M&xnmW$KJ?)GU^=1iq@<k4kVon%V(zxCCd`bG55PdL2a;x*iGgdh_4rU(OMr?BAV2nX{PdN+Kwc+zP#k<vIL
kS&LLNWjFCEdeY4HH2C7)U?~<;IFVWhT7LX|##&-
F!ObHl21tT+gVY~fOu%KGprgD=Slf%~$7*EgzF><&4VwwTXqc=66rERr))?Ali>z4fYEMwjZv>%vokQ@?Mv^Wy}Joh&R6A`|^D|3&KRFS$(ADV
BZtNX*ENz#cgk994cH_lWF?|=XcJZ+D6$whx7>Ty#5R}Rab6YI3(>2?HM4Y4s!u<o2f++(TPKgAfLC3E2yMf=dnbijNQHR>wOzVFP#sFv}d;0M
CFFI}lOn5#hRQW#Tj(0zk4y4}Kv23`BLPqVe%Oa8P?5r>ES&%_}+7YDm1ejcR+*a`-
%DBQLfFLT=js_EtO)LeIKG08#HS8}L{f3f@?6!sEs)rlBe=re_Bc+XfA*FPR%-
UX#$(C?a_HkP$Ohv^1fI)ZSqsflIPD&y)G02d=d+LFBWVm8h3s2>8@IQF`=Msxr>Ocz$E-^=0w9a?K{e9#NLcVFJ=0o(F9mXLAb4ZyVhXX1b-
Fh(xeOFaC-4yHXf=-Sh-fo1*hD{{#5Cb+U5I)KQ-RutRs{bX>cGwH)}xk&?EIFTs(tAw|C<_^c-
jRNOvlACx9s}{q`L+o*|$93;yDq$1~8KDcj<G8%2eN%U(##SpihQ<hH$J)YX)`N}KWd+>ZCY6T&O$5yhR>5XG5FU4$^|p%pn`=uk$-
8l4ac97H(XCnaLs|}dZ@*N0`arq9#g}v-
WnIOyea_O$)(`T$zH2kmc?Q8hql0zWkbGr@W8J$PT|3mun#&`1wtkEo8mTa4O|m2<ce)?iAUf&W|E*m8cCbOL%L@_>T^!rX4s94;Gmw|kISH&x
J~2dQkqbUowN16Ev7kTUkcQ4khFYoVL0*>>CmXeq4{=A7uXf2IZ7R{_icGaUtr8@1)(ENf?fJEIP|`k;u1_^ei@w3O{XcodaOy{%zl`Nv_t8kh
7x&JMzZv(RhvomykQI;L+1h-
GKY~HGIk0C9x9@HeF6)anpx}X8HiV17hs((H<+3)Eb%s!SaL!h5T1Gs*I2O<&MSBc{`RaLqy=8SVexILt82dR+As!mdULuyY;rl9ZGSSE1Nf0x
|>RNDbMV6gJ!Jo&8H9mMPZ4juv%dZ|=%U3@zX!jrk?5S2NOo^xNmkLsn!@ZrtP+Ja?RgXT#Bx?w!2)qmmGS3y4T`3y^AjV1l73$l6dV!+3buS8
ja#kWP^p&M91qh4hl`pokizr3m6oZ7DpideO$)ax9m>KIvmDq2rBn<Jbf7>LNtHztyC`m9r-J|i-
2fiQ|X24xmWjfm?7>}yno)z@(z_y^d2RAet+TDD+ev1J(>C*S~QCen5-
KGe%qV;Pggz}igb(~g4EG%7fi>b^*lZ1R4wN)EH7|#30x8fRTCH^o$#gk12hpjSJ3tEQu9`7JcK8GoDk^`=^zlwS^f9M&h^T71niR<TEx!A6Ik
%Fue8?3V)<A=gzvJ()gKg=@d7Ch_M0t&G{;|U=!V!vQXx6uuHB_vsSzBZC~Ug0;Bk}h^Q3Uyvs#czFD9U*f!T+kx#!p4g`stIuHg7Bd1yG$4@p
v`W|i{JUsS2B8BNiksJsUv={>nnaak^>Lj0^e;&aPqgh!MZZi2YkTs)>^q>Bs3h?Ldj6|Uns>XdC-
9sB`vY9_Dip&(zANYo(C}Gkccy23_$3FKZD$cpz~N6!bzGxiNzUO?F7|;Ghu4s@z@89v@L-5pioGE{4<-whMsE7H~@phgc7&pM(st_9X-
u5q*$U&@stK$zeZ^u$b5`aR(WapQZl7z=<JMW6mwadoPJ-
!x2#GPQEBSHdXSasf`}S=k}9dwxFC;dJ{jDMsF`TL60(uyr<C|>gA<PJAA4*r59}Rrds}m`It<7uPG8)j2rI;*HZ^hUt#L>eA!imdPQ3&`ky*;
s#V6NVM<d6-X$@zRx_Dj}cfdZ^(gZYfU_f>n^>Bhtt3Sx<*~f3GS5blb0_wPTQ+&EdsW+lSj{)WNr-
5&r6R96ZRKMNX^qv96yM7F<&kII<cAkO9!_VPTuqPq|<KT1cXd>(mE<SpNofSD5&c^MW=V27Vbfis+;sQDoY_7%ycd+jJ)&6eOh)xU}6UXK=50
~8u@Mu5oF`egkxM7VOy!PFQNUdXj16Zz@EZ{MF9MZ-
>j<cntSRT$i9#=pR><(>ADN%H|W7M*CjlD^KCnPB9_dO^T2#B3@=V=XBtnPZ)(M)>;wb~{L(rIm`gu{;yxGdULZ`<5YRktRrtW3k;h;y!hmh4u
rr-sjHe(j{*17m4XWie}}D<gFb76-
t{>0ePWOwAO}x2e<LD`_a|I1Gr00AfTWa1H(_mmN*8b!|w31+*F=EPgKMNio&__l3@|I7cHg+1qZkFK^C}ctT%suA`I~{z?z1QvefYjAD7lROY
M%7W^9t9hBH&&1Wk^=^6InnhT;`hp7aL_E_Y+5&|?6&-oVpd&I&qD6rDb`60Di^Mu-;G5WtJS-ywhK?<{HGc9ti9#W)sKcH#^VFy0w^4jX1{ke
^~(&k{(fYLtRtV>Gix>RGDq!Pu`6|`_EMu%$1ds?c}rS?5E-
Yo(QVTCYK$sF8apa+(DBH$f|sI!6jaQuX`*fRx6Sq7S|U)7a+Ua)tSSEod<*lSpeCE2oF&>1K>3VtFr{C660?2BP)^2%t39gQ{6X54$P!`j7!D
7n(fjRvP%2-
D+*Q*8o8sVGN;`5~ep_vgwx$}=IZyPps^K#$deFiXhZm}r|+CLL#xZRM^}YK0UKh>NYJOr|>DG?YL&xKbK#!FnUU{Z1Zv<3!E37r8*EA!#da1)
=XTgqqZDw}2ZHwOPy#h5^X!W>;=OOV1**Y!ehC&}3cP%iW2ebE`&-Bnm9}hSx`khy}l3n2eMV3Jdg@hnqn_buaU-L-
@xspc;(gU`Io1yi*88ap%RX0XWVj&K+71fejh!^5xvdpVIr|%7CikBDXW4pS-bS65l|IRL(XC^w5B^{*?%w`I{&jy7Xx-
g(^=O#NMyn;6Dm44M@$G0SZ~g4dDj|rOIck;MGz_D#S-
c#R2DEIK<7n7pw|$bp)1ZgJ@_R`S$q7au`OUIplgp7jl|tju}5rt4#1FhMIPJ=@#qU7(Ck8wj`(dZQQM3J2iJibj&X+PO`|XM2346WeZA<!Tv~
D>*wcZ(nav))D?vW;JuYgydysC=&<=vSWiPzS;eq7-5Q}|EQT^3i`>e5T%9;{B^ANb<~ChO5^@A3Qg2-
}opc5QUVqH)W`Mw!yCGJa8@O$Swxa{qvO=-)ws=-_Y_j)7bu5=E#Y!fANpu!Sncl#P3LT-DEk1Ua>2?&WC;-
IxS16ZG1SgeVXFF@lOEeTF5$DJOTQzhADSi7(SN4+NpKZ9Mxl1a=buWnP$x{6ea5cVuyW14mIG_y|g4k46ZdX6pwDb8x$WFt=p?28H`qiUAtzH
}y0A&68j0*pOwYbn+UO2}|7VP^t=Z$Sh1OrIo)6s4wfh^T7CJEp>obWxSjHp8~uLHU&cm+?7hj%yvx%<OS=ORP7yJ5B+wp=sM9yINcUf<^yCL&
ohUfffhF&I5FF^g;w6xqaG#}Eu8;&ty9jLsxs4Rf?8jqOMTGKx6NXxcG%59swqQNMBs?s8@MXv3B?fW$~odp<e#95Lh+DB4|#6@W5Wp`P!qiox
<c{{#0=RC)tXUi7_wllYrUvc0T|8Vmg@D4E2<emqk`Rix_+0BmE~AG0vYq@$hSysvENjygkO{NKI;m^LeR;v~yWJ9D2UxbO~-bjuNJ5XI=-
##Cx`>wI_dMp_E?=FB)wD;-8QKOk46Z<Jc-mz4!)Mmid8u_qiN=Aoi;x|}h}wNSsZ`)Y<reK|mPtGwFSoqWU6W>2h&NFC~C9lkriX9}TJK;K?c
o%7SOSP%ViPs38h(ENdeI`<u9&u@QYVDzB<Ty;NhzuM$gz)r~$OTq-
0l%+pLLu`ar>eB2|l|+pVd%?sA?ryX~AJ*C5ZmA41@A&n0{V$YWe;=B=az;65U6GKYCBlLY_-xvvtSWMqT#CTAM~a9qH~Q>UGwi8s?fxUR(r3L
|Q+6ds)D-
A$j|!(2kmfXUAbTp{M<uc|Dy>d9gsy*}ifhor(q~zXumo5i%9tu34iTEj1EzWrWd1r%4@UZAtW+O+HN^?C5GP)NTahgT4fF!%(dN(SW=f3UACI
1zjgrH5{ghE3!A7p0AzKE)?f9rcrO;GaXq-qlxI0x+T~e5&Ltq_N6B(L^j88D6omwVStBU~
"""


def _product(a: int, b: int, polynomial: int, degree: int) -> int:
    """Return the product of two polynomials over GF(2) modulo a third; bits are coefficients."""
    found = 0
    while b:
        if b & 1:
            found ^= a
        b >>= 1
        a <<= 1
        if a >> degree & 1:
            a ^= polynomial
    return found


def _power_of_x(exponent: int, polynomial: int, degree: int) -> int:
    found, base = 1, 2
    while exponent:
        if exponent & 1:
            found = _product(found, base, polynomial, degree)
        base = _product(base, base, polynomial, degree)
        exponent >>= 1
    return found


def _prime_factors(number: int) -> set[int]:
    found, divisor = set(), 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.add(divisor)
            number //= divisor
        divisor += 1
    return found | ({number} if number > 1 else set())


def primitive_polynomials() -> Iterator[tuple[int, int]]:
    """Generate the primitive polynomials over GF(2) in ascending order, with their degrees."""
    yield 1, 3
    degree = 2
    while True:
        order = (1 << degree) - 1
        factors = _prime_factors(order)
        for middle in range(1 << degree - 1):
            polynomial = 1 << degree | middle << 1 | 1
            # x generates all nonzero elements.
            if _power_of_x(order, polynomial, degree) == 1 and all(
                _power_of_x(order // factor, polynomial, degree) != 1 for factor in factors
            ):
                yield degree, polynomial
        degree += 1


@functools.lru_cache(maxsize=4)
def direction_numbers(dimensions: int) -> list[list[int]]:
    """Return the direction numbers of the first dimensions, which are fractions of 2^30.

    Examples
    --------
    >>> from candelabra.quasirandom.direction_numbers import direction_numbers
    >>> [[v >> 27 for v in row[:3]] for row in direction_numbers(3)]
    [[4, 2, 1], [4, 6, 5], [4, 6, 1]]
    """
    packed = int.from_bytes(base64.b85decode(_PACKED.replace("\n", "")), "little")
    rows = [[1 << BITS - 1 - i for i in range(BITS)]]
    for degree, polynomial in primitive_polynomials():
        if len(rows) == dimensions:
            return rows
        numbers = []
        for i in range(degree):
            numbers.append((packed & (1 << i) - 1) << 1 | 1)
            packed >>= i
        for i in range(degree, BITS):
            number = numbers[i - degree] ^ numbers[i - degree] << degree
            for c in range(1, degree):
                if polynomial >> degree - c & 1:
                    number ^= numbers[i - c] << c
            numbers.append(number)
        rows.append([number << BITS - 1 - i for i, number in enumerate(numbers)])
    raise AssertionError("there are infinitely many primitive polynomials")
